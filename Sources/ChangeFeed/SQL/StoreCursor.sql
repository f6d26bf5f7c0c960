-- Stores how far the hub has handed changes on ($3), and what its clients certainly have ($4), on which timeline ($5).
-- A stored cursor never runs ahead of the server's own history: every transaction its snapshot calls finished has its
-- record earlier in the WAL than this row, so after a crash or a failover either both survive or the cursor is older.
-- Returns where this row lies in the WAL and how far the WAL is safe, which tells when an earlier cursor became safe.
-- Locks: the hub's own row.
insert into roost.cursor (node, system_identifier, snapshot, recovery, timeline)
values ($1, $2::bigint, $3::pg_snapshot, $4::pg_snapshot, $5::integer)
on conflict (node) do update
set system_identifier = excluded.system_identifier, snapshot = excluded.snapshot, recovery = excluded.recovery,
    timeline = excluded.timeline, stored_at = clock_timestamp()
returning (pg_current_wal_insert_lsn() - '0/0')::bigint, (pg_current_wal_flush_lsn() - '0/0')::bigint
