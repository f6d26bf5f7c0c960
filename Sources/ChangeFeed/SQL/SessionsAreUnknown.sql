-- From here on roost.session may leave out somebody who may come back to this hub ($1).
-- Locks: the hub's own row.
delete from roost.session_list where node = $1
