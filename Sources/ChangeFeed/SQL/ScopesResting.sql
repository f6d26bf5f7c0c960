-- The other tables whose scope rests on a table ($1, an oid), as a members table.
-- Locks: none.
select relid::text from roost.scope where $1::oid = any (members::oid[]) and relid <> $1::oid order by 1
