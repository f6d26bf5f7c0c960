-- `roost watch` and `roost unwatch`: tables, their triggers and their scopes.

-- name: DescribeTable
-- The table that a name, as regclass reads it ($1), denotes, and whether it can be watched.
-- parse_ident fails for an invalid name (22023); from Postgres 16 on to_regclass does not distinguish that from the
-- name of no table.
-- Locks: none.
select c.oid, n.nspname, c.relname, format('%I.%I', n.nspname, c.relname), c.relkind, c.relispartition,
       c.relpersistence, n.nspname in ('pg_catalog', 'information_schema', 'roost') or n.nspname like 'pg\_toast%',
       (select format('%I.%I', rn.nspname, r.relname) from pg_class r join pg_namespace rn on rn.oid = r.relnamespace
        where r.oid = pg_partition_root(c.oid)),
       has_table_privilege(c.oid, 'trigger')
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = case when parse_ident($1) is not null then to_regclass($1) end

-- name: Namesakes
-- Tables whose name is the one in a text that names none ($1), but for capitals and the schema; three at the most.
-- Locks: none.
with given as (
    select lower(name[array_length(name, 1)]) as name, lower(name[1]) as schema
    from parse_ident($1) name
)
select format('%I.%I', n.nspname, c.relname)
from given g, pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition
  and n.nspname not in ('pg_catalog', 'information_schema', 'roost') and n.nspname not like 'pg\_%'
  and lower(c.relname) = g.name
order by lower(n.nspname) = g.schema desc, 1
limit 3

-- name: Candidates
-- Tables that could be watched, by whoever owns them, the largest first; twenty at the most.
-- Locks: none.
select format('%I.%I', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition and c.relpersistence <> 't'
  and n.nspname not in ('pg_catalog', 'information_schema', 'roost', 'auth', 'realtime', 'storage', 'vault')
  and n.nspname not like 'pg\_%' and has_table_privilege(c.oid, 'trigger')
order by c.reltuples desc, 1
limit 20

-- name: NoteInterruptions
-- Records the tables whose capture was interrupted until now (SchemaCapture.sql).
-- Locks: SHARE ROW EXCLUSIVE on roost.captured and the row of roost.meta if there is news.
select roost.note_captures()

-- name: PublicationTables
-- The tables of a publication ($1), partitions as their roots; one row with null if the publication has none, no row if
-- there is no such publication.
-- Locks: none.
select distinct case when c.oid is not null then quote_ident(n.nspname) || '.' || quote_ident(c.relname) end
from pg_publication p
left join pg_publication_tables m on m.pubname = p.pubname
left join pg_class l on l.oid = to_regclass(quote_ident(m.schemaname) || '.' || quote_ident(m.tablename))
left join pg_class c on c.oid = coalesce(pg_partition_root(l.oid), l.oid)
left join pg_namespace n on n.oid = c.relnamespace
where p.pubname = $1
order by 1

-- name: WatchTable
-- The statements that bring roost's triggers on a table and its partitions up to date: the member and the statement,
-- for each trigger that is missing, does not always fire, or differs from this version's.
-- They are enabled ALWAYS, so that they fire under session_replication_role = replica, too; only by the table's owner,
-- as the right to create triggers is not enough for that. ONLY: on a partitioned table some versions would look for the
-- trigger on partitions that have none yet.
-- Statement triggers are not inherited: a statement on the root fires the root's, one on a partition only its own, so
-- every member gets them. $1 is the root's oid. The root comes last: a partition that gets its triggers later than its
-- root may have been written to without them (SchemaCapture.sql).
-- Locks (of the statements): ShareRowExclusive on the member, for an instant, to create or enable a trigger;
-- AccessExclusive to replace one. On one member per transaction; on all only after LOCK TABLE of the root.
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
    -- Clients are not told, but cached answers about visibility that depend on this table must be dropped.
    (4, 'truncate', '', 32, null, null)
) o (place, op, tables, type, new_table, old_table)
-- tgtype: after, for each statement, and the event; the best match comes first.
left join lateral (
    select t.tgname, t.tgenabled = 'A' as fires, t.tgenabled = 'O' as fires_usually,
           t.tgtype = o.type and t.tgnewtable is not distinct from o.new_table::name
               and t.tgoldtable is not distinct from o.old_table::name and t.tgqual is null and t.tgattr::text = '' as fits
    from pg_trigger t
    where t.tgrelid = m.relid and not t.tgisinternal and t.tgfoid = to_regprocedure('roost.on_' || o.op || '()')
    order by 4 desc, 2 desc, 3 desc limit 1
) t on true
cross join lateral (values
    (1, case when not t.fits then format('drop trigger %I on %I.%I', t.tgname, n.nspname, c.relname) end),
    (2, case when t.fits is not true then format(
        'create trigger %I after %s on %I.%I %s for each statement execute function roost.%I()',
        'roost_' || o.op, o.op, n.nspname, c.relname, o.tables, 'on_' || o.op) end),
    (3, case when t.fits and t.fires or (t.fits is not true or t.fires_usually) and not pg_has_role(c.relowner, 'usage')
        then null else format(
        'alter table only %I.%I enable always trigger %I', n.nspname, c.relname,
        case when t.fits then t.tgname else 'roost_' || o.op end) end)
) s (step, statement)
where c.relkind in ('r', 'p') and s.statement is not null
order by m.level desc, m.relid, o.place, s.step

-- name: UnwatchTable
-- The statements that remove roost's triggers from a table and its partitions ($1 is the oid).
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

-- name: StoreScope
-- Stores that the visibility of a table's rows ($1, an oid) depends on a column ($2) only, as long as the members
-- tables ($3, oids) do not change, and whether that was derived ($4); replaces an earlier entry.
-- Locks: the table's row in roost.scope.
insert into roost.scope (relid, scope_column, members, derived) values ($1::oid, $2, $3::oid[]::regclass[], $4::boolean)
on conflict (relid) do update
set scope_column = excluded.scope_column, members = excluded.members, derived = excluded.derived

-- name: IsScopeDerivable
-- Whether a table ($1, an oid) has row level security and no declared scope.
-- Locks: none.
select c.relrowsecurity and not exists (select from roost.scope s where s.relid = c.oid and not s.derived)
from pg_class c where c.oid = $1::oid

-- name: ScopeColumn
-- The column of a table ($1, an oid) whose name, as SQL writes it, is $2.
-- Locks: none.
select a.attname from pg_attribute a
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped and array[a.attname::text] = parse_ident($2)

-- name: ScopesResting
-- The other tables whose scope depends on a table ($1, an oid) as a members table.
-- Locks: none.
select relid::text from roost.scope where $1::oid = any (members::oid[]) and relid <> $1::oid order by 1

-- name: ScopeRows
-- The statements that sample rows of a table ($1, an oid) with scope columns ($2): one selects rows, at most 200 and at
-- most ten per scope value, of values with several rows; the other returns which of the rows at given places ($1 of
-- that statement) are visible. A row is identified by its partition and place, so no key is needed; both statements run
-- in one snapshot. Each row comes with the value of its first scope column.
-- Locks: none.
select format(
    'with sampled as (select row(%1$s)::text as scope, %2$s::text as first, tableoid, ctid from %3$I.%4$I limit 20000), '
    'numbered as ('
    '    select *, count(*) over (partition by scope) as many, row_number() over (partition by scope) as n from sampled'
    ') '
    'select scope, first, tableoid, ctid from numbered where many > 1 and n <= 10 order by scope, n limit 200',
    (select string_agg(format('%I', name), ', ' order by place) from unnest($2::name[]) with ordinality s (name, place)),
    coalesce(quote_ident(($2::name[])[1]), 'null'), n.nspname, c.relname),
    format('select tableoid, ctid from %1$I.%2$I where ctid = any ($1::tid[])', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = $1::oid

-- name: ScopeRecords
-- The statement that samples rows of a table ($1, an oid) in the outbox's format, at most 20; and one that makes a row
-- of nulls, for an empty table.
-- Locks: none.
select format('select row_to_json(t.*) from %I.%I t limit 20', n.nspname, c.relname),
    format('select row_to_json(t.*) from (select (null::%I.%I).*) t', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = $1::oid

-- name: PolicyReaders
-- The roles whose SELECT on a table ($1, an oid) its policies decide: of the roles that tokens name, those that may
-- read it and that this session may become ($2, the privilege for pg_has_role); with each, the statement that reads the
-- table. It names no column, because a role may not have the right to read all of them.
-- Locks: none.
select r.rolname, format('select count(*) from (select from %I.%I limit 100) sampled', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
cross join pg_roles r
where c.oid = $1::oid and c.relrowsecurity and r.rolname in ('authenticated', 'anon')
    and not r.rolsuper and not r.rolbypassrls and (c.relowner <> r.oid or c.relforcerowsecurity)
    and pg_has_role(current_user, r.oid, $2) and has_schema_privilege(r.oid, n.oid, 'usage')
    and has_any_column_privilege(r.oid, c.oid, 'select')
order by r.rolname = 'anon'

-- name: ScopeUsers
-- The statements that sample values which may be users' ids, one per column of the members tables ($3, oids) and of the
-- table itself ($1, an oid) other than the scope column ($2): the members tables first, and among them uuid columns
-- first. If a table has the scope column too, its rows with the sampled scope values ($1 of the statement, text[]) are
-- used.
-- Locks: none.
select format(
    'select distinct %1$I::text from ('
    '    select %1$I from %2$I.%3$I where %1$I is not null and %4$s limit 200'
    ') sampled limit 20',
    a.attname, n.nspname, c.relname,
    case when s.attname is null then '$1::text[] is not null' else format('%I::text = any ($1::text[])', s.attname) end)
from unnest(array_append($3::oid[], $1::oid)) with ordinality t (relid, place)
join pg_class c on c.oid = t.relid
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attname <> $2
    and a.atttypid in ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype, 'int4'::regtype, 'int8'::regtype)
left join pg_attribute s on s.attrelid = c.oid and s.attname = $2 and s.attnum > 0 and not s.attisdropped
order by t.relid = $1::oid, a.atttypid <> 'uuid'::regtype, t.place, a.attnum
limit 12
