-- What the session that writes down who may come back runs besides Session.sql.
-- Joins wait for it, so that it must not wait long for anybody.
set application_name = 'roost sessions';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;
