-- Whether the outbox has a change of the transaction $1, of which it had one: where its file is another one, it was then
-- written anew, as by VACUUM FULL, and not emptied.
-- Locks: none.
select exists (select from roost.change where xid = $1::xid8)
