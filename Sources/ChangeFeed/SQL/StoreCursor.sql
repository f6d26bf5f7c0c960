-- Stores how far the hub has handed changes on.
-- A stored cursor never runs ahead of the server's own history: every transaction its snapshot calls finished has its
-- record earlier in the WAL than this row, so after a crash or a failover either both survive or the cursor is older.
-- Returns where this row lies in the WAL and how far the WAL is safe, which tells when an earlier cursor became safe.
-- Locks: the hub's own row.
insert into roost.cursor (node, system_identifier, snapshot) values ($1, $2::bigint, $3::pg_snapshot)
on conflict (node) do update
set system_identifier = excluded.system_identifier, snapshot = excluded.snapshot, stored_at = clock_timestamp()
returning (pg_current_wal_insert_lsn() - '0/0')::bigint, (pg_current_wal_flush_lsn() - '0/0')::bigint
