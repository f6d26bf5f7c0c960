-- Broadcasts that clients ask to be kept, as rows of realtime.messages (supabase/realtime PR 2022).
--
-- Invariants
--   * skip_broadcast: they have been broadcast already, so neither roost's trigger nor the publication of Supabase's own server sends
--     them once more. Where the table has no such column nothing is kept.
--   * Written with the hub's own rights, after the policies for extension 'persistence' have let the sender do so. The session has
--     row_security off: where policies would decide about the hub itself, this fails with a sentence.
-- Locks: those of an INSERT into realtime.messages.

-- name: MessageSession
-- What the session that keeps broadcasts runs besides Sessions.sql and PresenceSession.
set application_name = 'roost messages';
set row_security = off

-- name: MessageColumns
-- Whether realtime.messages has what rows that are not broadcast take, and what those take that expire.
-- Locks: none.
select bool_or(a.attname = 'skip_broadcast') is true, bool_or(a.attname = 'expires_at') is true
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'realtime'
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relname = 'messages' and c.relkind in ('r', 'p')

-- name: StoreMessages
-- Keeps broadcasts of private channels: $1 to $5, their ids, topics, events, and payloads as JSON or, in digits, as bytes.
insert into realtime.messages (id, topic, extension, event, payload, binary_payload, private, skip_broadcast)
select id, topic, 'broadcast', event, payload::jsonb, bytes::bytea, true, true
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as m (id, topic, event, payload, bytes)

-- name: StoreExpiringMessages
-- The same with the seconds after which each expires ($6); null: with the retention of the table.
insert into realtime.messages (id, topic, extension, event, payload, binary_payload, private, skip_broadcast, expires_at)
select id, topic, 'broadcast', event, payload::jsonb, bytes::bytea, true, true,
    (clock_timestamp() at time zone 'UTC') + ttl * interval '1 second'
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int4[])
    as m (id, topic, event, payload, bytes, ttl)
