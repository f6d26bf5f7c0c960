-- What decides whether a recovery can begin: the highest transaction of which changes are gone already, and those below
-- it of which none are.
-- Read when recoveries begin, and again for those that had to wait, when the statement that reads for them was sent.
-- Locks: none.
select pruned_xid, array_to_string(unpruned, ',') from roost.meta
