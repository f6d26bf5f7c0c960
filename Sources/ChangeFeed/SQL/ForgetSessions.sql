-- Forgets who may come back to this hub ($1), in the transaction that writes all of it anew.
-- Locks: rows of this hub's own, which nobody else writes.
delete from roost.session where node = $1
