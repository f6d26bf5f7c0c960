-- Who is present in channels at this hub, so that its next process knows it.
--
-- Invariants
--   * Rows of a hub are written by its own session alone, so nothing here waits for another hub.
-- Locks: rows of roost.presence of this hub's own.

-- name: PresenceSession
-- What the session that writes presence and users' status runs besides Sessions.sql.
-- A table that somebody has locked must hold up neither this session nor, by the locks it has, anybody else: it is
-- tried again. A hub that freezes in a transaction loses it, and with it the turn (BeginTurn).
set application_name = 'roost presence';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;

-- name: StorePresence
-- Writes down what changed in who is present at this hub ($1): those who are gone ($2, refs), and those who are there
-- ($3 to $10, one array per column).
-- Invariant: a ref comes once in one statement, either gone or there.
-- Locks: rows of this hub's own, which nobody else writes.
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
-- Deletes what is said to be present at this hub ($1) and is not ($2: the refs of all who are).
-- Locks: rows of this hub's own, which nobody else writes.
delete from roost.presence p
where node = $1 and not exists (select from unnest($2::text[]) there (ref) where there.ref = p.ref)

-- name: StoredPresence
-- Who was present at this hub ($1) when its last process ended.
-- Locks: none.
select ref, topic, private, key, made_key, user_id, payload, app_state from roost.presence where node = $1
