-- What the session that decides clients' filters runs besides Session.sql.
--
-- Invariants
--   * Whatever a filter makes Postgres do, it writes nothing and ends in time: each statement brings its own
--     statement_timeout; this one is for whatever forgets to.
--   * A wait for a lock (a table that is being altered) ends earlier than the statement, so that it is not taken for a
--     filter that computes too long. That, too, comes with each statement.
set application_name = 'roost filters';
set default_transaction_read_only = on;
set statement_timeout = '2s';
set lock_timeout = '1s';
set idle_in_transaction_session_timeout = '5s';
set max_parallel_workers_per_gather = 0;
set jit = off
