-- How rows are read that clients begin with, as their roles and by their policies.

-- name: SessionOfRows
-- What the sessions that read such rows run besides Sessions.sql.
--
-- Invariants
--   * Values have the texts that the outbox gives them, so the settings of Sessions.sql stay.
--   * Whatever a client asks for writes nothing and ends in time: each reading brings its own statement_timeout; this one is for
--     whatever forgets to.
--   * A wait for a lock ends earlier than the statement, so that it is not taken for a query without an index.
set application_name = 'roost rows';
set default_transaction_read_only = on;
set statement_timeout = '5s';
set lock_timeout = '1s';
set idle_in_transaction_session_timeout = '10s';
set max_parallel_workers_per_gather = 0;
set jit = off

-- name: RowsBegin
-- Begins a reading: all that follows sees one snapshot, and nothing of it stays. Names in braces are filled in.
--
-- Invariants
--   * The snapshot is the first result with rows, and the one of all statements that follow: what it does not see, a recovery that
--     begins there brings (Recovery.sql), and what it sees that does not.
--   * From the last statement on it is the client's role that reads: privileges and policies are Postgres' to apply.
-- Locks: none; those of the tables that are read then, until the end of the reading.
begin isolation level repeatable read read only;
set local statement_timeout = {limit};
set local lock_timeout = {locks};
select pg_current_snapshot()::text, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       set_config('request.jwt.claims', {claims}, true), set_config('request.jwt.claim.sub', {subject}, true),
       set_config('request.jwt.claim.role', {name}, true), set_config('request.headers', '{}', true),
       set_config('realtime.topic', {topic}, true);
set local role {role}
