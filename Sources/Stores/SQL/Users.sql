-- The users who are online at this hub, and what the application is told of them.
--
-- Invariants
--   * Roost's record and the application's statement are one transaction, and hubs take turns at it (BeginTurn).
-- Lock order: advisory lock (1919905652, 0), then rows of roost.online_user of this hub's own, then those that
-- users.statement takes.

-- name: OnlineUsers
-- Users whom this hub ($1) reported as online, and the latest time at which they are known to have been online, in
-- milliseconds since 1970: the hub was alive when any user came, when it stored its position in the changes, and at its
-- last sign of life. Capped by the server's clock, as the hub's may have been ahead.
-- Locks: none.
select o.user_id,
       floor(extract(epoch from least(greatest(o.since, latest.since, c.stored_at, l.at), clock_timestamp())) * 1000)::bigint
from roost.online_user o
cross join (select max(since) as since from roost.online_user where node = $1) latest
left join roost.cursor c on c.node = $1
left join roost.sign_of_life l on l.node = $1
where o.node = $1

-- name: Heartbeat
-- The sign of life of this hub ($1): written now and then while users are online, and when it stops.
-- Locks: the hub's own row.
insert into roost.sign_of_life (node, at) values ($1, clock_timestamp())
on conflict (node) do update set at = excluded.at

-- name: BeginTurn
-- Begins a transaction that tells the application who is online: one hub at a time, so that of two hubs that a user
-- leaves at the same moment the second one sees that it is the last. The statements that follow read after the lock is
-- taken.
-- Lock order: advisory lock (1919905652, 0), then rows of roost.online_user, then those that users.statement takes.
begin isolation level read committed;
select pg_advisory_xact_lock(1919905652, 0);

-- name: NoteTransitions
-- Records which users came online at this hub ($1) and which went offline ($2 users, $3 whether online, $4 when, in
-- milliseconds since 1970), and returns as three arrays what to tell users.statement.
--
-- Invariants
--   * A user reported as online already is not reported again: what the application wrote since, such as "away", stays.
--   * A user who is still online at another hub is not reported as offline.
--   * A user occurs once in one statement. The arrays are in the order of the users' bytes, so that two writers who
--     process them in order lock rows in the same order.
-- Locks: after BeginTurn, rows of this hub's own.
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
