-- What the session that reads for private channels runs besides Session.sql.
-- row_security off: a query that policies would cut short for the hub's own role fails instead.
set default_transaction_read_only = on;
set row_security = off;
set jit = off;
set max_parallel_workers_per_gather = 0;
