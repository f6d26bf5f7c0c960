-- The sessions of pushes, and the hubs that send them.
-- Locks: a hub's own row of roost.push_hub.

-- name: PushSession
-- The settings of the session of pushes, besides Sessions.sql.
-- An alert whose taking a crash of the server forgot would be sent twice, so a commit waits for the disk even if the
-- role's or the database's setting is off; a setting that waits for more than the disk, such as a standby, stays.
set application_name = 'roost push';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;
select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off';

-- name: Heartbeat
-- The sign of life of this hub ($1), which sends pushes.
-- Locks: the hub's own row.
insert into roost.push_hub (node, at) values ($1, clock_timestamp())
on conflict (node) do update set at = excluded.at
