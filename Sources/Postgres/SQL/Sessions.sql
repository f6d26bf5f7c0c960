-- Sessions of roost's, whatever they are for.

-- name: SetUp
-- What every session of roost's runs first: values have the texts the outbox gives them, and what is set for the role
-- or the database so that nobody forgets a session or a transaction does not end those of a hub.
-- Unknown to older servers, so set by way of the list: idle_session_timeout (14), transaction_timeout (17).
-- The tcp settings are the server's half: without them a hub whose machine vanished keeps its doorbell's lock, and
-- writers ring for it, for two hours. They mean nothing on a Unix socket.
-- search_path stays the role's own: operators of extension types are found by it.
set statement_timeout = 0;
set lock_timeout = 0;
set idle_in_transaction_session_timeout = 0;
set default_transaction_read_only = off;
set default_transaction_isolation = 'read committed';
set default_transaction_deferrable = off;
set tcp_keepalives_idle = 5;
set tcp_keepalives_interval = 2;
set tcp_keepalives_count = 3;
set tcp_user_timeout = 10000;
set "TimeZone" = 'UTC';
set "DateStyle" = 'ISO';
set "IntervalStyle" = 'postgres';
set bytea_output = 'hex';
set extra_float_digits = 1;
set standard_conforming_strings = on;
set client_min_messages = notice;
select set_config(name, '0', false) from pg_settings where name in ('idle_session_timeout', 'transaction_timeout');

-- name: RunningBackends
-- Which of these backends ($1: their process ids) still run, of those that were given up on so many milliseconds ago ($2, in
-- the same order). A process id is used again: whoever began after that is somebody else.
-- Locks: none.
select a.pid
from unnest($1::int4[], $2::int8[]) as given_up (pid, milliseconds)
join pg_stat_activity a on a.pid = given_up.pid
    and a.backend_start < clock_timestamp() - given_up.milliseconds * interval '1 ms'
