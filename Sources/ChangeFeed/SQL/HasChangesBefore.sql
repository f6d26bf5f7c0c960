-- Whether the outbox still has a change that the snapshot $1 sees: where its file is another one, it was then written anew,
-- as by VACUUM FULL, and not emptied.
-- Locks: none.
select exists (
    select from roost.change where xid < pg_snapshot_xmax($1::pg_snapshot) and pg_visible_in_snapshot(xid, $1::pg_snapshot)
)
