-- Where the feed starts: its doorbell, its stored cursor, and what the server is; $1 is the hub's name, $2 epochs that
-- this process has written.
--
-- A stored cursor means something only in the history it was taken in. That this is the same is told by the epochs
-- (Migration010Epochs.sql): is_foreign where any was written by another transaction than it says, into another table or
-- on another server, as by a restored dump; then the third column is false. Where somebody emptied the table, the system
-- identifier has to do.
-- Last come the transactions that restored epochs, those of $2 that there are, and whether the server was given a point
-- to recover to.
-- The timeline is that of the WAL that is being written: pg_control_checkpoint() tells a promoted server's new one only
-- after its next checkpoint. It cannot be asked of a standby.
-- Locks: none.
select n.doorbell, c.snapshot,
       case when e.is_foreign is null then c.system_identifier = s.system_identifier else not e.is_foreign end
           and pg_snapshot_xmax(c.snapshot) <= pg_snapshot_xmax(pg_current_snapshot()),
       s.system_identifier, pg_current_snapshot(), current_setting('track_commit_timestamp'),
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int,
       e.is_foreign, e.restored_by,
       (select string_agg(id::text, ',') from roost.epoch where id = any ($2::bigint[])),
       exists (
           select from pg_settings
           where name in ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time',
                   'recovery_target_xid')
               and setting <> '')
from pg_control_system() s
cross join roost.node n
cross join (
    select bool_or(w.is_foreign) as is_foreign,
           string_agg(distinct w.writer, ',') filter (where w.is_foreign) as restored_by
    from (
        select e.xmin::text as writer,
               e.xmin <> e.born::xid and coalesce(
                   e.system_identifier <> c.system_identifier or e.relation <> 'roost.epoch'::regclass, false
               ) as is_foreign
        from roost.epoch e cross join pg_control_system() c
    ) w
) e
left join roost.cursor c on c.node = n.name
where n.name = $1
