-- Deletes changes that claim a transaction which is not finished, though they are here: they came by another way than
-- their transaction, as out of a dump. When their number came round, they would be told as something new.
-- Locks: the rows it deletes.
delete from roost.change
where xid >= (select pg_snapshot_xmax(pg_current_snapshot()))
    or xid = any (array(select pg_snapshot_xip(pg_current_snapshot())))
