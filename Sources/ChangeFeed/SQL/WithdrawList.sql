-- From here on no claim counts that roost.session lists everybody who may come back to this hub ($1), until one is made for
-- the new turn (Migration012Losses.sql). No row where the hub has no cursor.
-- Locks: the hub's own row.
update roost.cursor set list_turn = list_turn + 1 where node = $1 returning list_turn
