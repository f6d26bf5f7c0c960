-- What the hub's last process left for its clients: from where they may have to be told again. No row where no hub of
-- this name stored anything yet; a version before catch-up left only its own cursor.
-- Locks: none.
select coalesce(recovery, snapshot) from roost.cursor where node = $1
