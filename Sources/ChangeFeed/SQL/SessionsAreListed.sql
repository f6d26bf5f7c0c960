-- From here on roost.session lists everybody who may come back to this hub ($1).
-- Locks: the hub's own row.
insert into roost.session_list (node) values ($1) on conflict do nothing
