-- Makes sure that this hub has a row, and with it a doorbell. The name ($1) identifies the hub across restarts.
-- The trigger roost.on_node makes the writers try the new doorbell: the row is inserted once in a hub's life, never
-- updated.
-- Locks: the new row; advisory lock (1919905650, 0) while writers' function is replaced.
insert into roost.node (name) values ($1) on conflict (name) do nothing
