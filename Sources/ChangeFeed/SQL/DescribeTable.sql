-- What a table named as regclass reads names ($1) is, and whether it can be watched.
-- parse_ident fails for what is no name (22023); from Postgres 16 on to_regclass does not tell that from a name that
-- nothing has.
-- Locks: none.
select c.oid, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname), c.relkind, c.relispartition,
       c.relpersistence, n.nspname in ('pg_catalog', 'information_schema', 'roost') or n.nspname like 'pg\_toast%',
       (select format('%I.%I', rn.nspname, r.relname) from pg_class r join pg_namespace rn on rn.oid = r.relnamespace
        where r.oid = pg_partition_root(c.oid)),
       has_table_privilege(c.oid, 'trigger')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = case when parse_ident($1) is not null then to_regclass($1) end
