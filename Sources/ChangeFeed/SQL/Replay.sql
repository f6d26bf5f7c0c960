-- The newest messages of one private channel ($1: its topic) since a time ($2: milliseconds since 1970), at most $3,
-- newest first.
--
-- Invariants
--   * Read with the hub's own rights, after the policies have let the reader in. The session has row_security off: where
--     policies would hide rows from the hub itself, this fails rather than leave something out.
--   * Nothing from more than a minute ahead, so that clocks which differ hide nothing, and a partitioned table is not
--     searched to its end.
--   * Older tables of Supabase's have no binary_payload, which is why it is not named as a column.
-- Locks: none.
select m.id, m.event, m.payload, to_jsonb(m) ->> 'binary_payload'
from realtime.messages m
where m.topic = $1 and m.private is true and m.extension = 'broadcast'
  and m.inserted_at >= to_timestamp($2::float8 / 1000) at time zone 'UTC'
  and m.inserted_at < clock_timestamp() at time zone 'UTC' + interval '1 minute'
order by m.inserted_at desc, m.id desc
limit $3::int
