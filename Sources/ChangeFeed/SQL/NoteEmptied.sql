-- The outbox was emptied by somebody for whom no trigger ran, between two windows: nothing is left of what was
-- there at the first. $1 is the highest transaction that the second might have seen, $2 those below that were running. TRUNCATE waits for whoever has written, so of those nothing was there.
-- Locks: the row of roost.meta.
update roost.meta set pruned_xid = $1::xid8, unpruned = $2::xid8[] where pruned_xid is null or pruned_xid < $1::xid8
