-- The turn that a claim about this hub's list ($1) has to be for to count; no row where the hub has no cursor yet.
-- Locks: none.
select list_turn from roost.cursor where node = $1
