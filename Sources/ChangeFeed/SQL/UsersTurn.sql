-- Begins a transaction that tells the application who is online: one hub at a time, so that of two hubs that a user
-- leaves in the same moment the second one sees that it is the last. What follows is read after the lock is there.
-- Lock order: advisory lock (1919905652, 0), then rows of roost.online_user, then what users.statement takes.
begin isolation level read committed;
select pg_advisory_xact_lock(1919905652, 0);
