-- Begins a transaction for an audience statement, which is the operator's: it writes nothing, and nobody waits for it
-- for long.
begin read only;
set local statement_timeout = '2s';
set local lock_timeout = '500ms'
