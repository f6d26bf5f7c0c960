-- What the feed's sessions run besides Session.sql.
-- Nothing the hub writes needs to survive a crash of the server: the cursor is then a little older, and rows are read
-- again.
-- Plans: a window is cut by literals over the outbox' one index; without statistics the planner may prefer to read it
-- all.
set synchronous_commit = off;
set enable_seqscan = off;
set max_parallel_workers_per_gather = 0;
set jit = off;
set default_transaction_isolation = 'read committed';
set default_transaction_read_only = off;
