-- What is wrong with roost's triggers, on every table that has any of them, whether it fires or not: the watched table
-- (a partition's root), the faults of its members, whether the table itself is among them, its oid, and whether changes of
-- rows are lost by it, not only what a TRUNCATE tells.
--
-- Faults
--   * missing: there is none for the operation. Of a partition: it was added later.
--   * silent: there is one, and it does not fire, because it is disabled or for replicas only.
--   * foreign: it is not as this version makes it (Watching.sql), so what it writes may be anything.
--   * twice: two fire, and every change is written twice.
-- Locks: none beyond those of reading the catalog.
with known as (
    select t.tgrelid, t.tgname, t.tgenabled in ('O', 'A') as fires, t.tgtype, t.tgnewtable, t.tgoldtable,
           t.tgqual is null and t.tgattr::text = '' as is_plain, substr(p.proname, 4) as op
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
      and p.proname in ('on_insert', 'on_update', 'on_delete', 'on_truncate')
), roots as (
    select distinct coalesce(pg_partition_root(tgrelid), tgrelid)::oid as oid from known
), members as (
    select r.oid as root, m.relid from roots r cross join lateral (
        select relid::oid as relid from pg_partition_tree(r.oid) union select r.oid
    ) m
), wanted (op, type, new_table, old_table) as (values
    ('insert', 4, 'roost_new', null), ('update', 16, 'roost_new', 'roost_old'), ('delete', 8, null, 'roost_old'),
    ('truncate', 32, null, null)
), found as (
    select m.root, m.relid, w.op, count(k.tgname) as triggers, count(k.tgname) filter (where k.fires) as firing,
           coalesce(bool_and(
               k.tgtype = w.type and k.tgnewtable is not distinct from w.new_table::name
               and k.tgoldtable is not distinct from w.old_table::name and k.is_plain
           ) filter (where k.tgname is not null), true) as fits
    from members m join pg_class c on c.oid = m.relid and c.relkind in ('r', 'p')
    cross join wanted w
    left join known k on k.tgrelid = m.relid and k.op = w.op
    group by m.root, m.relid, w.op
), faults as (
    select root, relid, op, case
        when triggers = 0 then 'missing'
        when not fits then 'foreign'
        when firing = 0 then 'silent'
        when firing > 1 then 'twice'
    end as fault
    from found
)
select format('%I.%I', n.nspname, c.relname), f.fault, bool_or(f.relid = f.root), f.root, bool_or(f.op <> 'truncate')
from faults f join pg_class c on c.oid = f.root join pg_namespace n on n.oid = c.relnamespace
where f.fault is not null
group by 1, 2, 4
order by 1, 2
