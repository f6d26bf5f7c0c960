-- What the session that writes presence and users' status runs besides Session.sql.
-- A table that somebody has locked must hold up neither this session nor, by the locks it has, anybody else: it is
-- tried again. A hub that freezes in a transaction loses it, and with it the turn (UsersTurn.sql).
set application_name = 'roost presence';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;
