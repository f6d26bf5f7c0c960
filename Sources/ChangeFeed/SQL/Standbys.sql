-- The standbys that follow this server: who, the bytes of WAL that each has not replayed and the seconds that it is
-- behind (null where this role may not know, the seconds also where nothing was written lately).
-- Locks: none.
select concat_ws(' at ', coalesce(nullif(application_name, ''), 'a standby'), host(client_addr)),
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint, extract(epoch from replay_lag)::float8
from pg_stat_replication
where not pg_is_in_recovery() and state is distinct from 'backup'
order by 1
