-- Notes who came online at this hub ($1) and who went ($2 users, $3 whether online, $4 when, in milliseconds since
-- 1970), and returns as three arrays what users.statement is to be told.
--
-- Invariants
--   * Whom the statement was told to be online already is not told again: what the application wrote since, such as
--     "away", stays.
--   * Whoever is still online at another hub is not told to be offline.
--   * A user comes once in one statement. The arrays are in the order of the users' bytes, so that two writers who
--     follow them lock rows in the same order.
-- Locks: after UsersTurn.sql, rows of this hub's own.
with word as materialized (
    select user_id, online, to_timestamp(at / 1000.0) as at
    from unnest($2::text[], $3::boolean[], $4::bigint[]) w (user_id, online, at)
), came as (
    insert into roost.online_user (node, user_id, since)
    select $1, user_id, at from word where online
    on conflict do nothing
    returning user_id
), went as (
    delete from roost.online_user o using word w where o.node = $1 and o.user_id = w.user_id and not w.online
), told as (
    select * from word w
    where case when online then exists (select from came where came.user_id = w.user_id)
          else not exists (select from roost.online_user o where o.user_id = w.user_id and o.node <> $1) end
)
select count(*), array_agg(user_id order by user_id collate pg_catalog."C")::text,
       array_agg(online order by user_id collate pg_catalog."C")::text,
       array_agg(at order by user_id collate pg_catalog."C")::text
from told
