-- The presences in channels at this hub, stored for its next process.
--
-- Invariants
--   * Rows of a hub are written by its own session alone, so nothing here waits for another hub.
-- Locks: rows of roost.presence of this hub's own.

-- name: PresenceSession
-- The settings of the session that writes presence and users' status, besides Sessions.sql.
-- A locked table must hold up neither this session nor, by its locks, any other: the statement is tried again. A hub
-- that freezes in a transaction loses it, and with it the turn (BeginTurn).
set application_name = 'roost presence';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;

-- name: StorePresence
-- Stores the changes of presence at this hub ($1): the refs that left ($2), and those that are present ($3 to $10, one
-- array per column).
-- Invariant: a ref occurs once in one statement, either gone or present.
-- Locks: rows of this hub's own, which no other session writes.
with gone as (
    delete from roost.presence where node = $1 and ref = any ($2::text[])
)
insert into roost.presence (node, ref, topic, private, key, made_key, user_id, payload, app_state)
select $1, *
from unnest(
    $3::text[], $4::text[], $5::boolean[], $6::text[], $7::boolean[], $8::text[], $9::text[], $10::text[])
on conflict (node, ref) do update
set topic = excluded.topic, private = excluded.private, key = excluded.key, made_key = excluded.made_key,
    user_id = excluded.user_id, payload = excluded.payload, app_state = excluded.app_state

-- name: ForgetPresence
-- Deletes the presences stored for this hub ($1) except the given ones ($2: the refs of all that are present).
-- Locks: rows of this hub's own, which no other session writes.
delete from roost.presence p
where node = $1 and not exists (select from unnest($2::text[]) there (ref) where there.ref = p.ref)

-- name: StoredPresence
-- The presences at this hub ($1) when its last process ended.
-- Locks: none.
select ref, topic, private, key, made_key, user_id, payload, app_state from roost.presence where node = $1
