-- Broadcasts that clients ask to be stored, as rows of realtime.messages (supabase/realtime PR 2022).
--
-- Invariants
--   * skip_broadcast: they have been broadcast already, so neither roost's trigger nor the publication of Supabase's
--     own server sends them again. If the table has no such column, nothing is stored.
--   * Written with the hub's own rights, after the policies for extension 'persistence' have allowed it for the sender.
--     The session has row_security off: if policies would apply to the hub itself, this fails with an explanation.
-- Locks: those of an INSERT into realtime.messages.

-- name: MessageSession
-- The settings of the session that stores broadcasts, besides Sessions.sql and PresenceSession.
set application_name = 'roost messages';
set row_security = off

-- name: MessageColumns
-- Whether realtime.messages has the columns for rows that are not broadcast, and for rows that expire.
-- Locks: none.
select bool_or(a.attname = 'skip_broadcast') is true, bool_or(a.attname = 'expires_at') is true
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'realtime'
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relname = 'messages' and c.relkind in ('r', 'p')

-- name: StoreMessages
-- Stores broadcasts of private channels: $1 to $5 are their ids, topics, events, and payloads as JSON or, in digits, as
-- bytes.
insert into realtime.messages (id, topic, extension, event, payload, binary_payload, private, skip_broadcast)
select id, topic, 'broadcast', event, payload::jsonb, bytes::bytea, true, true
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[]) as m (id, topic, event, payload, bytes)

-- name: StoreExpiringMessages
-- The same with the seconds after which each expires ($6); null: with the table's retention.
insert into realtime.messages (id, topic, extension, event, payload, binary_payload, private, skip_broadcast, expires_at)
select id, topic, 'broadcast', event, payload::jsonb, bytes::bytea, true, true,
    (clock_timestamp() at time zone 'UTC') + ttl * interval '1 second'
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int4[])
    as m (id, topic, event, payload, bytes, ttl)
