-- Statements about Roost's sessions, whatever their use.

-- name: SetUp
-- The first script of every session of Roost's. Values get the texts that the outbox gives them, and settings of the role
-- or the database against forgotten sessions and transactions do not end the hub's.
-- Unknown to older servers, so set by way of the list: idle_session_timeout (14), transaction_timeout (17).
-- The tcp settings are the server's half: without them, a hub whose machine vanished keeps its doorbell's lock, and writers
-- keep ringing it, for two hours. They have no effect on a Unix socket.
-- search_path stays the role's own: it is how operators of extension types are found.
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
-- The backends among $1 (process IDs) that still run the statements abandoned $2 milliseconds ago (in the same order).
-- Process IDs are reused: a backend that started later is a different one.
-- Locks: none.
select a.pid
from unnest($1::int4[], $2::int8[]) as given_up (pid, milliseconds)
join pg_stat_activity a on a.pid = given_up.pid
    and a.backend_start < clock_timestamp() - given_up.milliseconds * interval '1 ms'
