-- From here on roost.session lists everybody who may come back to this hub ($1), for as long as the hub is in this turn
-- ($2), which was read before the list was found complete.
-- Locks: the hub's own row.
insert into roost.session_list (node, turn) values ($1, $2::bigint) on conflict (node) do update set turn = excluded.turn
