-- What makes roost's triggers on a table and its partitions as they should be: the member and the statement, for each
-- trigger that is missing, does not fire, or is not as this version makes it.
-- Statement triggers are not inherited: a statement on the root fires the root's, one on a partition only its own, so
-- every member gets them. $1 is the root's oid.
-- Locks (of the statements): ShareRowExclusive on the member, for an instant, where one is made or enabled;
-- AccessExclusive where one is made anew. Root before partitions.
select m.relid::regclass::text, s.statement
from (
    select relid, level from pg_partition_tree($1::oid) union select $1::oid, 0
) m
join pg_class c on c.oid = m.relid
join pg_namespace n on n.oid = c.relnamespace
cross join (values
    (1, 'insert', 'referencing new table as roost_new', 4, 'roost_new', null),
    (2, 'update', 'referencing new table as roost_new old table as roost_old', 16, 'roost_new', 'roost_old'),
    (3, 'delete', 'referencing old table as roost_old', 8, null, 'roost_old'),
    -- Clients are told nothing of it, but answers about visibility that rest on this table have to be forgotten.
    (4, 'truncate', '', 32, null, null)
) o (place, op, tables, type, new_table, old_table)
-- tgtype: after, for each statement, and the event; the best there is.
left join lateral (
    select t.tgname, t.tgenabled in ('O', 'A') as fires,
           t.tgtype = o.type and t.tgnewtable is not distinct from o.new_table::name
               and t.tgoldtable is not distinct from o.old_table::name and t.tgqual is null and t.tgattr::text = '' as fits
    from pg_trigger t
    where t.tgrelid = m.relid and not t.tgisinternal and t.tgfoid = to_regprocedure('roost.on_' || o.op || '()')
    order by 3 desc, 2 desc limit 1
) t on true
cross join lateral (values
    (1, case when not t.fits then format('drop trigger %I on %I.%I', t.tgname, n.nspname, c.relname) end),
    (2, case when t.fits is not true then format(
        'create trigger %I after %s on %I.%I %s for each statement execute function roost.%I()',
        'roost_' || o.op, o.op, n.nspname, c.relname, o.tables, 'on_' || o.op) end),
    (3, case when t.fits and not t.fires then format(
        'alter table %I.%I enable trigger %I', n.nspname, c.relname, t.tgname) end)
) s (step, statement)
where c.relkind in ('r', 'p') and s.statement is not null
order by m.level, m.relid, o.place, s.step
