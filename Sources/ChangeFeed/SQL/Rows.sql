-- Reads of the rows that clients start from, as the clients' roles and under their policies.

-- name: SessionOfRows
-- The settings of the sessions that read such rows, besides Sessions.sql.
--
-- Invariants
--   * Values have the texts that the outbox gives them, so the settings of Sessions.sql stay.
--   * Whatever a client asks for, it writes nothing and ends in time: each read brings its own statement_timeout; this one
--     is for a read that lacks it.
--   * A wait for a lock ends earlier than the statement, so that it is not mistaken for a query without an index.
set application_name = 'roost rows';
set default_transaction_read_only = on;
set statement_timeout = '5s';
set lock_timeout = '1s';
set idle_in_transaction_session_timeout = '10s';
set max_parallel_workers_per_gather = 0;
set jit = off

-- name: RowsBegin
-- Begins a read: everything after it sees one snapshot, and none of its effects stay. Names in braces are filled in.
--
-- Invariants
--   * The snapshot is the first result with rows, and applies to all following statements: a recovery that begins there
--     brings what it does not see (Recovery.sql), and nothing that it sees.
--   * After the last statement, the client's role is the one that reads: Postgres applies privileges and policies.
-- Locks: none here; then those of the tables that are read, until the end of the read.
begin isolation level repeatable read read only;
set local statement_timeout = {limit};
set local lock_timeout = {locks};
select pg_current_snapshot()::text, to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       set_config('request.jwt.claims', {claims}, true), set_config('request.jwt.claim.sub', {subject}, true),
       set_config('request.jwt.claim.role', {name}, true), set_config('request.headers', '{}', true),
       set_config('realtime.topic', {topic}, true);
set local role {role}
