-- The check for changes deleted from the outbox before they were read (SchemaRecovery.sql).

-- name: OutboxLook
-- The state that shows whether anything was deleted from the outbox (SchemaRecovery.sql): its file, the highest
-- transaction that has lost changes, and those below it that have lost none. Part of a window, or alone.
-- Locks: none.
select json_build_array(pg_relation_filenode('roost.change'), pruned_xid::text, array_to_string(unpruned, ','))
from roost.meta

-- name: LatestRead
-- The latest transaction that has a change in the outbox and that the snapshot $1 sees; no row if there is none. Unless its
-- change is deleted, a rewritten file still has it, and an emptied one lacks it.
-- Locks: none.
select xid from roost.change
where xid < pg_snapshot_xmax($1::pg_snapshot) and pg_visible_in_snapshot(xid, $1::pg_snapshot)
order by xid desc limit 1

-- name: HasChangeOf
-- True if the outbox has a change of the transaction $1, which had one before: a new file then means that the table was
-- rewritten, as by VACUUM FULL, and not emptied.
-- Locks: none.
select exists (select from roost.change where xid = $1::xid8)

-- name: NoteEmptied
-- Records that the outbox was emptied between two windows without its triggers running: nothing is left of what existed at
-- the first window. $1 is the highest transaction that the second window might have seen, $2 the lower ones that were
-- running. TRUNCATE waits for every transaction that has written, so the running ones had nothing there.
-- Locks: the row of roost.meta.
update roost.meta set pruned_xid = $1::xid8, unpruned = $2::xid8[] where pruned_xid is null or pruned_xid < $1::xid8
