-- The statements that take roost's triggers off a table and its partitions ($1 is the oid).
-- Locks (of the statements): AccessExclusive on the member, for an instant; root before partitions.
select m.relid::regclass::text, format('drop trigger %I on %I.%I', t.tgname, n.nspname, c.relname)
from (
    select relid, level from pg_partition_tree($1::oid) union select $1::oid, 0
) m
join pg_class c on c.oid = m.relid
join pg_namespace n on n.oid = c.relnamespace
join pg_trigger t on t.tgrelid = m.relid and not t.tgisinternal
join pg_proc p on p.oid = t.tgfoid
join pg_namespace f on f.oid = p.pronamespace
where f.nspname = 'roost' and p.proname in ('on_insert', 'on_update', 'on_delete', 'on_truncate')
order by m.level, m.relid, t.tgname
