-- Where the feed starts: its doorbell, its stored cursor, and what the server is.
-- A cursor means something only on the cluster it was taken on: a dump restored elsewhere carries foreign transaction
-- ids, which is told by the system identifier, or by a cursor that lies ahead of the server.
-- The timeline is that of the WAL that is being written: pg_control_checkpoint() tells a promoted server's new one only
-- after its next checkpoint. It cannot be asked of a standby.
-- Locks: none.
select n.doorbell, c.snapshot,
       c.system_identifier = s.system_identifier
           and pg_snapshot_xmax(c.snapshot) <= pg_snapshot_xmax(pg_current_snapshot()),
       s.system_identifier, pg_current_snapshot(), current_setting('track_commit_timestamp'),
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
from pg_control_system() s
cross join roost.node n
left join roost.cursor c on c.node = n.name
where n.name = $1
