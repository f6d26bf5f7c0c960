-- What tells whether changes went from the outbox before they were read (Migration012Losses.sql).

-- name: OutboxLook
-- What tells whether anything went from the outbox (Migration012Losses.sql): its file, the highest transaction of which
-- changes are gone, and those below it of which none are. Part of a window, or alone.
-- Locks: none.
select json_build_array(pg_relation_filenode('roost.change'), pruned_xid::text, array_to_string(unpruned, ','))
from roost.meta

-- name: LatestRead
-- The latest transaction of which a change is in the outbox that the snapshot $1 sees; no row where there is none. While
-- nobody deletes that change, it is what a file has that was written anew, and what one lacks that was emptied.
-- Locks: none.
select xid from roost.change
where xid < pg_snapshot_xmax($1::pg_snapshot) and pg_visible_in_snapshot(xid, $1::pg_snapshot)
order by xid desc limit 1

-- name: HasChangeOf
-- Whether the outbox has a change of the transaction $1, of which it had one: where its file is another one, it was then
-- written anew, as by VACUUM FULL, and not emptied.
-- Locks: none.
select exists (select from roost.change where xid = $1::xid8)

-- name: NoteEmptied
-- The outbox was emptied by somebody for whom no trigger ran, between two windows: nothing is left of what was
-- there at the first. $1 is the highest transaction that the second might have seen, $2 those below that were running. TRUNCATE waits for whoever has written, so of those nothing was there.
-- Locks: the row of roost.meta.
update roost.meta set pruned_xid = $1::xid8, unpruned = $2::xid8[] where pruned_xid is null or pruned_xid < $1::xid8
