-- Who is online at this hub, and what the application is told of it.
--
-- Invariants
--   * What roost notes and what the application is told are one transaction, and hubs take turns at it (BeginTurn).
-- Lock order: advisory lock (1919905652, 0), then rows of roost.online_user of this hub's own, then what users.statement takes.

-- name: OnlineUsers
-- Users whom this hub ($1) told to be online, and when they certainly still were, as far as is known, in milliseconds
-- since 1970: the hub lived when any user came, when it stored how far it had handed changes on, and at its last sign.
-- Capped by the server's clock, as the hub's may have been ahead.
-- Locks: none.
select o.user_id,
       floor(extract(epoch from least(greatest(o.since, latest.since, c.stored_at, l.at), clock_timestamp())) * 1000)::bigint
from roost.online_user o
cross join (select max(since) as since from roost.online_user where node = $1) latest
left join roost.cursor c on c.node = $1
left join roost.sign_of_life l on l.node = $1
where o.node = $1

-- name: Heartbeat
-- This hub ($1) is there: now and then while users are online, and when it stops.
-- Locks: the hub's own row.
insert into roost.sign_of_life (node, at) values ($1, clock_timestamp())
on conflict (node) do update set at = excluded.at

-- name: BeginTurn
-- Begins a transaction that tells the application who is online: one hub at a time, so that of two hubs that a user
-- leaves in the same moment the second one sees that it is the last. What follows is read after the lock is there.
-- Lock order: advisory lock (1919905652, 0), then rows of roost.online_user, then what users.statement takes.
begin isolation level read committed;
select pg_advisory_xact_lock(1919905652, 0);

-- name: NoteTransitions
-- Notes who came online at this hub ($1) and who went ($2 users, $3 whether online, $4 when, in milliseconds since
-- 1970), and returns as three arrays what users.statement is to be told.
--
-- Invariants
--   * Whom the statement was told to be online already is not told again: what the application wrote since, such as
--     "away", stays.
--   * Whoever is still online at another hub is not told to be offline.
--   * A user comes once in one statement. The arrays are in the order of the users' bytes, so that two writers who
--     follow them lock rows in the same order.
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
