-- Those of the tables ($1, oids) that have row level security and no policy that could show a row.
-- Locks: none.
select format('%I.%I', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = any ($1::oid[]) and c.relrowsecurity and not exists (
    select from pg_policy p where p.polrelid = c.oid and p.polcmd in ('r', '*') and p.polpermissive
)
order by 1
