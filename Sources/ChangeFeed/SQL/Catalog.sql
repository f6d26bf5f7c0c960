-- The watched tables, and what roles may read of them.

-- name: CatalogVersion
-- A text that differs whenever the hub's knowledge of tables, policies and privileges may have become outdated.
--
-- Invariants
--   * It names the version (xmin) of every catalog row that Catalog.sql, Access in Catalog.sql and the policies depend on.
--     Two transactions never leave the same xmin on a row, except after a wraparound in between.
--   * pg_roles stands for pg_authid, which only superusers may read.
--   * It includes whether the slot is being read, because faults depend on that (TableFaults in Catalog.sql).
--   * It is read twice a second while changes flow, and whenever members recover, inside the statement that reads a window,
--     so the window's snapshot is the one it is true of.
-- Locks: none beyond those of reading the catalog.
with watched as (
    select t.tgrelid as oid from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
    union
    select oid from roost.watched
), parts (kind, part) as (
    select 'class', string_agg(concat_ws(':', c.oid, c.xmin), ',' order by c.oid)
    from pg_class c join watched w on w.oid = c.oid
    union all
    select 'attribute', string_agg(concat_ws(':', a.attrelid, a.attnum, a.xmin), ',' order by a.attrelid, a.attnum)
    from pg_attribute a join watched w on w.oid = a.attrelid where a.attnum > 0
    union all
    select 'trigger', string_agg(concat_ws(':', t.oid, t.xmin), ',' order by t.oid)
    from pg_trigger t join watched w on w.oid = t.tgrelid where not t.tgisinternal
    union all
    select 'publication', string_agg(concat_ws(':', p.oid, p.xmin, r.oid, r.xmin), ',' order by p.oid, r.oid)
    from pg_publication p left join pg_publication_rel r on r.prpubid = p.oid where p.pubname = 'roost'
    union all
    select 'slot', string_agg(s.active::text, ',') from pg_replication_slots s where s.slot_name = roost.slot_name()
    union all
    select 'subscription', string_agg(concat_ws(':', r.srsubid, r.srrelid), ',' order by r.srsubid, r.srrelid)
    from pg_subscription_rel r join watched w on w.oid = r.srrelid
    union all
    select 'partition', string_agg(concat_ws(':', i.inhrelid, i.inhparent, i.xmin), ',' order by i.inhrelid, i.inhparent)
    from pg_inherits i join watched w on w.oid in (i.inhrelid, i.inhparent)
    union all
    select 'index', string_agg(concat_ws(':', i.indexrelid, i.xmin), ',' order by i.indexrelid)
    from pg_index i join watched w on w.oid = i.indrelid
    union all
    select 'policy', string_agg(concat_ws(':', p.oid, p.xmin), ',' order by p.oid)
    from pg_policy p join watched w on w.oid = p.polrelid
    union all
    select 'namespace', string_agg(concat_ws(':', n.oid, n.xmin), ',' order by n.oid) from pg_namespace n
    where n.nspname !~ '^pg_(temp|toast)'
    union all
    select 'member', string_agg(concat_ws(':', m.roleid, m.member, m.xmin), ',' order by m.roleid, m.member)
    from pg_auth_members m
    union all
    select 'role', string_agg(concat_ws(':', r.oid, r.rolname, r.rolsuper, r.rolbypassrls, r.rolinherit), ',' order by r.oid)
    from pg_roles r
    union all
    select 'scope', string_agg(concat_ws(':', s.relid::oid, s.xmin), ',' order by s.relid) from roost.scope s
    union all
    select 'capture', string_agg(concat_ws(':', p.oid, p.xmin), ',' order by p.oid) from pg_proc p
    where p.pronamespace = to_regnamespace('roost') and p.proname in ('on_insert', 'on_update', 'on_delete')
    union all
    -- Tables that took the place of watched ones.
    select 'heir', string_agg(c.oid::text, ',' order by c.oid)
    from roost.captured k join pg_namespace n on n.nspname = k.schema
    join pg_class c on c.relnamespace = n.oid and c.relname = k.name and c.oid <> k.relid
    union all
    -- Writes to an unlogged table produce no WAL.
    select 'unlogged', string_agg(m.relid::text, ',' order by m.relid)
    from roost.watched w cross join lateral (select relid::oid from pg_partition_tree(w.oid)) m
    join pg_class c on c.oid = m.relid and c.relpersistence = 'u' where w.by_wal
    union all
    -- A scope also depends on the text of functions. Those in pg_temp are the hub's own.
    select 'function', string_agg(concat_ws(':', f.oid, f.xmin), ',' order by f.oid)
    from pg_proc f join pg_namespace n on n.oid = f.pronamespace
    where exists (select from roost.scope) and f.oid >= 16384
      and n.nspname !~ '^pg_' and n.nspname <> 'roost'
)
select md5(string_agg(concat_ws('=', kind, part), ';' order by kind)) from parts

-- name: MayCompile
-- True if the session may create temporary functions.
-- Locks: none.
select has_database_privilege(current_database(), 'temporary')

-- name: CatalogVersionFunction
-- CatalogVersion in Catalog.sql ({body}) as a function of the session that reads windows.
--
-- Planning it costs four times as much as running it, and the plan of a statement that is composed each time is not kept; a
-- function's plan is. It is stable, so it reads in the snapshot of the statement that calls it.
-- Locks: none.
create function pg_temp.roost_catalog_version() returns text language plpgsql stable as $version$
begin
    return {body};
end
$version$

-- name: Catalog
-- The watched tables with their columns, one row per column, in attribute order.
--
-- Invariants
--   * SchemaCapture.sql defines which tables are watched, and that a partition counts as its root, which is the only
--     one reported.
--   * comparison is a case of Comparison (Sources/Matching/Table.swift). "text by bytes" only if Postgres itself compares
--     bytes; a domain compares as its base type.
--   * Columns that some versions lack (datlocprovider, colllocale) are read through to_jsonb.
--   * has_surrogate_key is the table's, according to roost.is_surrogate for the only column of the primary key.
-- Locks: none beyond those of reading the catalog.
with database as (
    select to_jsonb(d) ->> 'datlocprovider' as provider, datcollate,
           coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') as locale
    from pg_database d where datname = current_database()
), watched as (
    select c.oid, n.nspname, c.relname, c.relreplident, c.relrowsecurity
    from roost.watched w join pg_class c on c.oid = w.oid join pg_namespace n on n.oid = c.relnamespace
), forms as materialized (
    select type, roost.value_form(type) as form from (
        select distinct a.atttypid as type from watched w join pg_attribute a on a.attrelid = w.oid and a.attnum > 0
    ) types where type <> 0
), collations as (
    select l.oid, l.collisdeterministic as deterministic,
           case
               when l.collprovider = 'd' then coalesce(d.provider, 'c') = 'c' and d.datcollate in ('C', 'POSIX')
                    or d.provider = 'b' and d.locale in ('C', 'C.UTF-8')
               when l.collprovider = 'b' then coalesce(to_jsonb(l) ->> 'colllocale', l.collcollate) in ('C', 'C.UTF-8')
               else l.collprovider = 'c' and l.collcollate in ('C', 'POSIX')
           end as by_bytes
    from pg_collation l cross join database d
)
select w.oid, w.nspname, w.relname, a.attname, t.typname, format_type(a.atttypid, a.atttypmod),
       case
           when b.typname in ('int2', 'int4', 'int8', 'oid', 'numeric') then 'decimal'
           when b.typname in ('float4', 'float8') then 'float'
           when b.typname in ('text', 'varchar', 'name') then
               case when not l.deterministic then 'postgres' when l.by_bytes then 'textByBytes' else 'text' end
           when b.typname in ('uuid', 'date', 'timestamp', 'timestamptz') then b.typname::text
           when b.typname = 'bool' then 'boolean'
           when b.typname in (
               'time', 'timetz', 'inet', 'cidr', 'macaddr', 'macaddr8', 'bytea', 'char', 'pg_lsn', 'xid8'
           ) then 'canonical'
           else case when b.typtype = 'e' then 'canonical' else 'postgres' end
       end as comparison,
       coalesce(a.attnum = any (pk.keys), false) as is_primary_key,
       case w.relreplident
           when 'f' then true
           when 'd' then coalesce(a.attnum = any (pk.keys), false)
           when 'i' then coalesce(a.attnum = any (ri.keys), false)
           else false
       end as is_replica_identity,
       w.relrowsecurity as has_row_security, t.typcategory = 'S' as is_string,
       f.form = 'json' as is_json, coalesce(pk.is_surrogate, false) as has_surrogate_key
from watched w
left join pg_attribute a on a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
left join pg_type t on t.oid = a.atttypid
left join forms f on f.type = a.atttypid
-- Only the types of pg_catalog are known by name; another schema may contain a "uuid" of its own.
left join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
    and (b.typnamespace = 'pg_catalog'::regnamespace or b.typtype = 'e')
left join collations l on l.oid = a.attcollation
left join lateral (
    select (i.indkey::int2[])[0:i.indnkeyatts - 1] as keys, i.indnkeyatts = 1 and roost.is_surrogate(i.indrelid, i.indkey[0])
        as is_surrogate
    from pg_index i where i.indrelid = w.oid and i.indisprimary
) pk on true
left join lateral (
    select (i.indkey::int2[])[0:i.indnkeyatts - 1] as keys from pg_index i where i.indrelid = w.oid and i.indisreplident
) ri on true
order by w.oid, a.attnum

-- name: Access
-- Roles' access to the watched tables: one row per role and table, and one with a null table for a role that may read
-- none. $1: the roles' names. A name that is not a role has no row.
--
-- Invariants
--   * is_restricted is what row_security_active() returns for the current user, computed for another one: superusers and
--     BYPASSRLS are exempt from policies, and so is a role with the owner's privileges unless RLS is forced.
--   * columns is null if the role may SELECT the table as a whole.
-- Locks: none beyond those of reading the catalog.
with roles as (
    select r.oid, r.rolname, r.rolsuper or r.rolbypassrls as is_beyond, pg_has_role(r.oid, 'member') as is_assumable
    from pg_roles r where r.rolname = any ($1::name[])
), watched as (
    select c.oid, c.relowner, c.relnamespace, c.relrowsecurity, c.relforcerowsecurity
    from roost.watched w join pg_class c on c.oid = w.oid
)
select r.rolname, r.is_assumable, w.oid,
       w.relrowsecurity and not r.is_beyond
           and (w.relforcerowsecurity or not pg_has_role(r.oid, w.relowner, 'usage')) as is_restricted,
       case when not has_table_privilege(r.oid, w.oid, 'select') then (
           select json_agg(a.attname order by a.attnum) from pg_attribute a
           where a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
             and has_column_privilege(r.oid, w.oid, a.attnum, 'select')
       ) end as columns
from roles r left join watched w
    on has_schema_privilege(r.oid, w.relnamespace, 'usage') and has_any_column_privilege(r.oid, w.oid, 'select')
order by r.rolname, w.oid

-- name: TableFaults
-- Faults that keep changes of a watched table from being recorded exactly once: the table (a partition's root), the faults
-- of its members, whether the table itself is among them, its oid, and whether they concern changes of rows rather than
-- only TRUNCATE. $1: true if the hub in question reads the WAL.
--
-- Faults of tables that have any trigger of Roost's, firing or not
--   * missing: there is none for the operation. On a partition: the partition was added later.
--   * silent: there is one that does not fire, because it is disabled or for replicas only.
--   * foreign: it is not as this version creates it (WatchTable in Watching.sql), so what it writes may be anything.
--   * twice: two fire, and every change is recorded twice.
--   * applied: logical replication writes to it (a subscription), for which no statement triggers fire.
--   * inherits: it inherits from another table, or another one from it, and it is not a partition. A statement on the one
--     fires no triggers of the other, whose rows it writes or shows as well.
-- Faults of published tables, for which missing triggers do not count
--   * both: triggers fire as well, and every change is recorded twice.
--   * unread: no hub reads the WAL, and the hub in question will not.
--   * narrow: not all changes are published, or the table or one of its partitions is unlogged.
-- Locks: none beyond those of reading the catalog.
with known as (
    select t.tgrelid, t.tgname, t.tgenabled in ('O', 'A') as fires, t.tgtype, t.tgnewtable, t.tgoldtable,
           t.tgqual is null and t.tgattr::text = '' as is_plain, substr(p.proname, 4) as op
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
      and p.proname in ('on_insert', 'on_update', 'on_delete', 'on_truncate')
), roots as (
    select r.oid, coalesce(w.by_wal, false) as by_wal
    from (select distinct coalesce(pg_partition_root(tgrelid), tgrelid)::oid as oid from known) r
    left join roost.watched w on w.oid = r.oid
), members as (
    select r.oid as root, r.by_wal, m.relid from roots r cross join lateral (
        select relid::oid as relid from pg_partition_tree(r.oid) union select r.oid
    ) m
), wanted (op, type, new_table, old_table) as (values
    ('insert', 4, 'roost_new', null), ('update', 16, 'roost_new', 'roost_old'), ('delete', 8, null, 'roost_old'),
    ('truncate', 32, null, null)
), found as (
    select m.root, m.by_wal, m.relid, w.op, count(k.tgname) as triggers, count(k.tgname) filter (where k.fires) as firing,
           coalesce(bool_and(
               k.tgtype = w.type and k.tgnewtable is not distinct from w.new_table::name
               and k.tgoldtable is not distinct from w.old_table::name and k.is_plain
           ) filter (where k.tgname is not null), true) as fits
    from members m join pg_class c on c.oid = m.relid and c.relkind in ('r', 'p')
    cross join wanted w
    left join known k on k.tgrelid = m.relid and k.op = w.op
    group by m.root, m.by_wal, m.relid, w.op
), faults as (
    select root, relid, op, case
        when by_wal then case when firing > 0 then 'both' end
        when triggers = 0 then 'missing'
        when not fits then 'foreign'
        when firing = 0 then 'silent'
        when firing > 1 then 'twice'
    end as fault
    from found
    union all
    select m.root, m.relid, 'insert', 'applied' from members m join pg_subscription_rel r on r.srrelid = m.relid
    where not m.by_wal
    union all
    select m.root, m.relid, 'insert', 'inherits' from members m
    where not m.by_wal and exists (
        select from pg_inherits i join pg_class h on h.oid = i.inhrelid
        where m.relid in (i.inhrelid, i.inhparent) and not h.relispartition)
    union all
    select oid, oid, 'insert', 'unread' from roost.watched
    where by_wal and not $1::boolean
      and not exists (select from pg_replication_slots s where s.slot_name = roost.slot_name() and s.active)
    union all
    select w.oid, w.oid, 'insert', 'narrow' from roost.watched w
    where w.by_wal and not exists (select from roost.capture_mark m where m.relid = w.oid and m.is_published)
)
select format('%I.%I', n.nspname, c.relname), f.fault, bool_or(f.relid = f.root), f.root, bool_or(f.op <> 'truncate')
from faults f join pg_class c on c.oid = f.root join pg_namespace n on n.oid = c.relnamespace
where f.fault is not null
group by 1, 2, 4
order by 1, 2

-- name: NoteCaptures
-- Records where the capture of tables was interrupted since a hub last checked (SchemaCapture.sql), and returns their
-- names.
-- Locks: SHARE ROW EXCLUSIVE on roost.captured and the row of roost.meta if there is news.
select roost.note_captures()

-- name: RefreshTextNeeds
-- Tells writers which tables have rows that JSON does not preserve exactly, given their present columns
-- (SchemaRows.sql).
-- Locks: advisory lock (1919905650, 1) if there is news.
select roost.refresh_text_needs()

-- name: DisplacedTables
-- Tables that have the names of watched ones but are not watched themselves: they took the watched tables' place. With the
-- watched table's present name, null if it is gone.
-- Locks: none.
select format('%I.%I', k.schema, k.name), case when o.oid is not null then format('%I.%I', s.nspname, o.relname) end
from roost.captured k
join pg_namespace n on n.nspname = k.schema
join pg_class c on c.relnamespace = n.oid and c.relname = k.name and c.relkind in ('r', 'p') and not c.relispartition
left join pg_class o on o.oid = k.relid
left join pg_namespace s on s.oid = o.relnamespace
where c.oid <> k.relid and not k.is_released and not exists (select from roost.watched w where w.oid = c.oid)
order by 1

-- name: HasScope
-- A row if any table has a scope; only then is Scopes needed.
-- Locks: none.
select from roost.scope limit 1

-- name: Scopes
-- The scopes (of table $1, an oid, or all if it is null) and their problems: one row per problem, and one with a null
-- problem for a sound scope. The hub uses only sound scopes.
--
-- Invariants
--   * A declared scope is as a person wrote it. A derived one has the columns that the policies read now, and as members
--     the tables that they name now and those seen in their functions when it was derived.
--   * A problem means that visibility may depend on more than the scope column and the members tables. The policies' reads
--     are taken from their parsed form (pg_node_tree) and, through row level security, views and inheritance, from what
--     these read in turn. In doubt, a problem is reported.
--   * Reads inside functions are not visible here; `roost doctor` therefore compares sample rows too. For functions that a
--     derived scope depends on, the text is searched for anything that makes results differ although no table changed;
--     functions within functions are found by their names, so rather too many than too few.
--   * The number of kept answers is bounded by the number of columns that a derived scope may have, and by the rule that
--     together they are not a key of the table.
--   * A column is the table's own if its varno is 1 and its level equals the number of enclosing queries (token, part: the
--     QUERY nodes that are open). If a version of Postgres wrote this differently, the counts would differ: a problem.
--   * kind is `watch` if `roost watch` repairs it, `gone` if a table is gone, `policy` otherwise.
-- Locks: none.
with recursive stored as (
    select s.relid::oid as relid, s.scope_column, s.members::oid[] as members, s.derived,
           case when c.oid is not null then format('%I.%I', n.nspname, c.relname) end as name, c.relrowsecurity
    from roost.scope s
    left join pg_class c on c.oid = s.relid
    left join pg_namespace n on n.oid = c.relnamespace
    where $1::oid is null or s.relid = $1::oid
), read (scope, relid) as (
    select relid, relid from stored where relrowsecurity
    union
    select r.scope, x.relid::oid
    from read r join pg_class c on c.oid = r.relid
    cross join lateral (
        select m[1] from pg_policy p, regexp_matches(p.polqual::text, ':relid (\d+) ', 'g') m
        where c.relrowsecurity and p.polrelid = c.oid and p.polcmd in ('r', '*')
        union all
        select m[1] from pg_rewrite w, regexp_matches(w.ev_action::text, ':relid (\d+) ', 'g') m
        where c.relkind = 'v' and w.ev_class = c.oid
        union all
        select i.inhrelid::text from pg_inherits i
        where c.relkind = 'r' and c.oid <> r.scope and i.inhparent = c.oid
    ) x (relid)
), expression (scope, relid, what, tree) as (
    select r.scope, r.relid, format('the policy %I of %s', p.polname, r.relid::regclass), p.polqual::text
    from read r join pg_class c on c.oid = r.relid join pg_policy p on p.polrelid = c.oid
    where c.relrowsecurity and p.polcmd in ('r', '*')
    union all
    select r.scope, r.relid, format('the view %s', r.relid::regclass), w.ev_action::text
    from read r join pg_class c on c.oid = r.relid join pg_rewrite w on w.ev_class = c.oid
    where c.relkind = 'v'
), token as materialized (
    -- Braces that the tree opens and closes, with the depth inside an opening and outside a closing one.
    select e.scope, e.what, t.place, t.m[1] as brace, t.m[2] as label,
           sum(case t.m[1] when '{' then 1 else -1 end) over (partition by e.scope, e.what order by t.place) as depth,
           v[1]::int as varno, v[2]::int as attnum, v[3]::int as levels_up
    from expression e
    cross join lateral regexp_matches(e.tree, '((?<!\\)[{}])([A-Z_]*)([^{}]*)', 'g') with ordinality t (m, place)
    left join lateral regexp_match(
        t.m[3], '^ :varno (\d+) :varattno (-?\d+) .*:varlevelsup (\d+) ') v on t.m[1] = '{' and t.m[2] = 'VAR'
    where e.relid = e.scope
), part as (
    select q.scope, q.what, q.place as opened, (
        select min(c.place) from token c
        where c.scope = q.scope and c.what = q.what and c.place > q.place and c.brace = '}' and c.depth = q.depth - 1
    ) as closed
    from token q where q.label = 'QUERY'
), own as (
    select distinct t.scope, t.what, t.attnum from token t
    where t.varno = 1 and t.levels_up = (
        select count(*) from part q
        where q.scope = t.scope and q.what = t.what and t.place between q.opened and q.closed
    )
), declared as (
    select s.relid, s.name, s.relrowsecurity, s.derived,
           case when s.derived then array(
               select a.attname from own o join pg_attribute a on a.attrelid = o.scope and a.attnum = o.attnum
               where o.scope = s.relid and o.attnum > 0 group by a.attname, a.attnum order by a.attnum
           ) else array[s.scope_column] end as columns,
           case when s.derived then array(
               select unnest(s.members)
               union
               select coalesce(pg_partition_root(r.relid), r.relid)
               from read r join pg_class c on c.oid = r.relid
               where r.scope = s.relid and r.relid <> s.relid and c.relkind in ('r', 'p') and c.oid >= 16384
               order by 1
           ) else s.members end as members
    from stored s
), routine (scope, oid) as (
    select e.scope, m[1]::oid
    from expression e join stored s on s.relid = e.scope and s.derived
    cross join lateral regexp_matches(e.tree, ':(?:op)?funcid (\d+) ', 'g') m
    where m[1]::oid >= 16384
    union
    select r.scope, f.oid
    from routine r
    join pg_proc p on p.oid = r.oid
    join pg_proc f on f.oid >= 16384 and f.oid <> p.oid and f.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
    where case when strpos(lower(p.prosrc), lower(f.proname)) > 0
        then p.prosrc ~* ('\m' || regexp_replace(f.proname, '(\W)', '\\\1', 'g') || '\M') end
        or exists (
            select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
                and d.refclassid = 'pg_proc'::regclass and d.refobjid = f.oid
        )
), source (scope, what, text) as (
    select e.scope, e.what, pg_get_expr(p.polqual, p.polrelid)
    from expression e join pg_policy p
        on p.polrelid = e.relid and e.what = format('the policy %I of %s', p.polname, e.relid::regclass)
    join stored s on s.relid = e.scope and s.derived
    union all
    select r.scope, format('the function %s', r.oid::regprocedure), pg_get_functiondef(f.oid)
    from routine r join pg_proc f on f.oid = r.oid and f.prokind in ('f', 'p')
    union all
    select r.scope, format('the view %s', r.relid::regclass), pg_get_viewdef(r.relid)
    from read r join pg_class c on c.oid = r.relid and c.relkind = 'v'
    join stored s on s.relid = r.scope and s.derived
), doubt (scope, what) as (
    select r.scope, case
        when f.provolatile = 'v' then format(
            'the function %1$s is volatile; where it only reads, run `alter function %1$s stable`', f.oid::regprocedure)
        else format('the function %s is written in %s, whose inside is not looked at', f.oid::regprocedure, l.lanname)
    end
    from routine r join pg_proc f on f.oid = r.oid join pg_language l on l.oid = f.prolang
    where f.provolatile = 'v' or l.lanname not in ('sql', 'plpgsql', 'c', 'internal')
    union all
    select s.scope, format('%s depends on more than tables and claims (%s)', s.what, w[1])
    from source s
    cross join lateral regexp_match(s.text, '\m('
        'execute|now|clock_timestamp|statement_timestamp|transaction_timestamp|current_timestamp|current_date|current_time'
        '|localtimestamp|localtime|timeofday|random|gen_random_uuid|uuid_generate_\w+|nextval|currval|lastval|setval'
        '|txid_\w+|pg_current_\w+|pg_stat_\w+|pg_locks|pg_backend_pid|dblink\w*|query_to_xml\w*|inet_\w+_addr'
        ')\M', 'i') w
    where w is not null
    union all
    select s.scope, format('%s reads a setting other than the claims (%s)', s.what, btrim(m[1]))
    from source s
    cross join lateral regexp_matches(s.text, '\mcurrent_setting\s*\(\s*([^,)]*)', 'gi') m
    where m[1] !~ '^''(request\.[a-z_.]+|role|realtime\.topic)''(::text)?\s*$'
), needed (scope, relid, name) as (
    select d.relid, m.relid, case when c.oid is null then m.relid::text else format('%I.%I', n.nspname, c.relname) end
    from declared d
    cross join lateral unnest(d.members || d.relid) m (relid)
    left join pg_class c on c.oid = m.relid
    left join pg_namespace n on n.oid = c.relnamespace
), problem (scope, kind, what) as (
    select d.relid, 'gone', format('the table with the oid %s is gone', d.relid) from declared d where d.name is null
    union
    select d.relid, 'gone', format('the column %I is gone', c.name)
    from declared d cross join lateral unnest(d.columns) c (name)
    where d.name is not null and not exists (
        select from pg_attribute a
        where a.attrelid = d.relid and a.attname = c.name and a.attnum > 0 and not a.attisdropped
    )
    union
    select d.relid, 'policy', format('the policies read %s of its columns (%s), and at most three can be kept apart',
        cardinality(d.columns), (select string_agg(format('%I', name), ', ') from unnest(d.columns) c (name)))
    from declared d where d.derived and cardinality(d.columns) > 3
    union
    select d.relid, 'policy', format('no two of its rows have the same %s, which the policies read', (
        select string_agg(format('%I', name), ', ') from unnest(d.columns) c (name)))
    from declared d where d.derived and exists (
        select from pg_index i where i.indrelid = d.relid and i.indisunique and i.indpred is null and i.indexprs is null
            and not exists (
                select from unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k (attnum)
                join pg_attribute a on a.attrelid = d.relid and a.attnum = k.attnum
                where a.attname <> all (d.columns)
            )
    )
    union
    select d.relid, 'policy', 'the policies read the table itself, so each of its changes would undo what is known'
    from declared d where d.derived and (d.relid = any (d.members) or exists (
        select from expression e
        where e.scope = d.relid and e.relid = d.relid and strpos(e.tree, format(':relid %s ', e.scope)) > 0
    ))
    union
    select d.scope, 'policy', d.what from doubt d
    union
    select o.scope, 'policy',
           format('%s also reads %s', o.what, string_agg(format('%I', a.attname), ', ' order by a.attnum))
    from own o
    join declared d on d.relid = o.scope
    join pg_attribute a on a.attrelid = o.scope and a.attnum = o.attnum
    where o.attnum > 0 and a.attname <> all (d.columns)
    group by o.scope, o.what
    union
    select o.scope, 'policy', format('%s reads whole rows or system columns', o.what) from own o where o.attnum <= 0
    union
    select e.scope, 'policy', format('%s cannot be read on this version of Postgres', e.what)
    from expression e
    where e.relid = e.scope and (select count(*) from regexp_matches(e.tree, ':varattno ', 'g'))
        <> (select count(*) from token t where t.scope = e.scope and t.what = e.what and t.attnum is not null)
    union
    select e.scope, 'policy', format('%s reads that table itself, which is not among the members tables', e.what)
    from expression e join declared d on d.relid = e.scope
    where not d.derived and e.relid = e.scope and e.scope <> all (d.members) and strpos(e.tree, format(':relid %s ', e.scope)) > 0
    union
    select e.scope, 'policy', format('%s depends on the time or on chance', e.what)
    from expression e
    where e.tree ~ '\{SQLVALUEFUNCTION :op [0-8] ' or exists (
        select from regexp_matches(e.tree, ':(?:op)?funcid (\d+) ', 'g') m join pg_proc f on f.oid = m[1]::oid
        where f.pronamespace = 'pg_catalog'::regnamespace
          and (f.provolatile = 'v' or f.proname in ('now', 'transaction_timestamp', 'statement_timestamp'))
    )
    union
    select r.scope, 'policy',
           format(case when d.derived then 'visibility also rests on %s, whose changes cannot be followed'
               else 'visibility also rests on %s, which is not among the members tables' end, r.relid::regclass)
    from read r
    join declared d on d.relid = r.scope
    join pg_class c on c.oid = r.relid
    where r.relid <> r.scope and c.relkind <> 'v' and coalesce(pg_partition_root(r.relid), r.relid) <> all (d.members)
    union
    select d.relid, 'gone', format('the members table with the oid %s is gone', n.name)
    from declared d join needed n on n.scope = d.relid
    where n.relid <> d.relid and not exists (select from pg_class c where c.oid = n.relid)
    union
    select n.scope, 'watch', format('%s is not watched, or not wholly', n.name)
    from needed n
    cross join lateral (select relid from pg_partition_tree(n.relid) union select n.relid) t
    join pg_class c on c.oid = t.relid and c.relkind in ('r', 'p')
    cross join unnest('{roost.on_insert(),roost.on_update(),roost.on_delete(),roost.on_truncate()}'::text[]) f (name)
    where not exists (
        select from pg_trigger g
        where g.tgrelid = t.relid and not g.tgisinternal and g.tgenabled <> 'D' and g.tgfoid = to_regprocedure(f.name)
    ) and not exists (select from roost.watched w where w.oid = n.relid and w.by_wal)
    union
    -- The WAL reports a change later than triggers do, so a row would be judged by the earlier members.
    select n.scope, 'watch', format('%s is read from the WAL, and %s is not, so that its changes come too late', n.name, d.name)
    from needed n
    join declared d on d.relid = n.scope
    join roost.watched w on w.oid = n.relid and w.by_wal
    where n.relid <> n.scope
      and not exists (select from roost.watched t where t.oid = n.scope and t.by_wal and not t.by_triggers)
)
select d.relid, coalesce(d.name, d.relid::text), to_json(d.columns), array_to_string(d.members, ' '),
       (select string_agg(n.name, ', ' order by n.name) from needed n where n.scope = d.relid and n.relid <> d.relid),
       coalesce(d.relrowsecurity, false), p.kind, p.what, d.derived
from declared d left join problem p on p.scope = d.relid
order by d.relid, p.kind, p.what

-- name: FindTable
-- A row if a table of this schema ($1) and name ($2) exists at all; asked when a client names one that is not watched.
-- Locks: none.
select true from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relname = $2 and c.relkind in ('r', 'p')
