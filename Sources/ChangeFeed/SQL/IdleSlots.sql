-- Replication slots that nobody reads and that keep more than $1 bytes of WAL.
-- Locks: none.
select slot_name, quote_literal(slot_name), pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
from pg_replication_slots
where not pg_is_in_recovery() and not active and restart_lsn is not null
  and pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > $1::bigint
order by 3 desc
