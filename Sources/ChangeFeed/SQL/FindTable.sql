-- Whether a table of this schema ($1) and name ($2) exists at all; asked when a client names one that is not watched.
-- Locks: none.
select true from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p')
