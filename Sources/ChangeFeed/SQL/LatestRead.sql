-- The latest transaction of which a change is in the outbox that the snapshot $1 sees; no row where there is none. While
-- nobody deletes that change, it is what a file has that was written anew, and what one lacks that was emptied.
-- Locks: none.
select xid from roost.change
where xid < pg_snapshot_xmax($1::pg_snapshot) and pg_visible_in_snapshot(xid, $1::pg_snapshot)
order by xid desc limit 1
