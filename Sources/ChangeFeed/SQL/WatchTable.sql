-- The members of a table's partition tree that lack one of roost's triggers, and the statement that adds it.
-- Statement triggers are not inherited: a statement on the root fires the root's, one on a partition only its own, so
-- every member gets them. $1 is the root's oid.
-- Locks (of the statements): ShareRowExclusive on the member, for an instant; root before partitions.
select m.relid::regclass::text, format(
    'create trigger %I after %s on %I.%I %s for each statement execute function roost.%I()',
    'roost_' || o.op, o.op, n.nspname, c.relname, o.tables, 'on_' || o.op)
from (
    select relid, level from pg_partition_tree($1::oid) union select $1::oid, 0
) m
join pg_class c on c.oid = m.relid
join pg_namespace n on n.oid = c.relnamespace
cross join (values
    (1, 'insert', 'referencing new table as roost_new'),
    (2, 'update', 'referencing new table as roost_new old table as roost_old'),
    (3, 'delete', 'referencing old table as roost_old'),
    -- Clients are told nothing of it, but answers about visibility that rest on this table have to be forgotten.
    (4, 'truncate', '')
) o (place, op, tables)
where c.relkind in ('r', 'p') and not exists (
    select from pg_trigger t
    where t.tgrelid = m.relid and not t.tgisinternal and t.tgenabled <> 'D'
      and t.tgfoid = to_regprocedure('roost.on_' || o.op || '()')
)
order by m.level, m.relid, o.place
