-- The sessions of pushes, and which hubs send them.
-- Locks: a hub's own row of roost.push_hub.

-- name: PushSession
-- What the session of pushes runs besides Sessions.sql.
-- A taken alert that a crash of the server forgot would be sent twice, so a commit waits for the disk even where the
-- role or the database says otherwise; what waits for more than the disk, such as a standby, stays.
set application_name = 'roost push';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;
select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off';

-- name: Heartbeat
-- This hub ($1) sends pushes, and is there.
-- Locks: the hub's own row.
insert into roost.push_hub (node, at) values ($1, clock_timestamp())
on conflict (node) do update set at = excluded.at
