-- What the sessions that ask policies run besides Session.sql.
--
-- Invariants
--   * A policy sees the settings that its database and the hub's role start with, as it would in PostgREST's session:
--     a policy may compare days. The texts of records mean the same under any of them.
--   * A policy is planned once, not for each user: a plan costs more than its answer.
--   * Nothing written here has to survive anything: every transaction that runs a policy is rolled back.
reset "TimeZone";
reset "DateStyle";
reset "IntervalStyle";
set application_name = 'roost policies';
set plan_cache_mode = force_generic_plan;
set max_parallel_workers_per_gather = 0;
set jit = off;
set synchronous_commit = off;
set default_transaction_isolation = 'read committed'
