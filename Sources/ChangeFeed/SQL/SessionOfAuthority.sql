-- What the session that reads for private channels runs besides Session.sql.
-- row_security off: a query that policies would cut short for the hub's own role fails instead.
-- statement_timeout: below what the hub waits (AuthoritySession.limit), so that a slow replay ends by itself and the
-- session goes on.
set default_transaction_read_only = on;
set statement_timeout = '1500ms';
set lock_timeout = '1200ms';
set row_security = off;
set jit = off;
set max_parallel_workers_per_gather = 0;
