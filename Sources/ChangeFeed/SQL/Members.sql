-- Policies' reads of members tables: look-ups for MemberReadsAnalysis.

-- name: PolicyTrees
-- The parsed SELECT policies of a table ($1, an oid), for any role.
-- Locks: none.
select p.polqual::text from pg_policy p
where p.polrelid = $1::oid and p.polcmd in ('r', '*') and p.polqual is not null

-- name: RoutineFacts
-- A function ($1, an oid): its name as SQL calls it, whether it is Postgres' own, its volatility, whether it runs as its
-- owner, its parsed body if it has one, its language, text, arguments and result as SQL declares them, and the search_path
-- that it sets.
-- prosrc and prosqlbody are read through to_jsonb: the second does not exist before Postgres 14.
-- Locks: none.
select format('%I.%I', n.nspname, f.proname), f.oid < 16384 and n.nspname = 'pg_catalog', f.provolatile, f.prosecdef,
       to_jsonb(f) ->> 'prosqlbody', l.lanname, f.prosrc,
       case when f.prokind = 'f' then pg_get_function_identity_arguments(f.oid) end, pg_get_function_result(f.oid),
       (select substr(c, length('search_path=') + 1) from unnest(f.proconfig) c where c like 'search\_path=%')
from pg_proc f join pg_namespace n on n.oid = f.pronamespace join pg_language l on l.oid = f.prolang
where f.oid = $1::oid

-- name: TwinBody
-- The parsed form of the function that was just created.
-- Locks: none.
select to_jsonb(f) ->> 'prosqlbody' from pg_proc f
where f.proname = 'roost_twin' and f.pronamespace = pg_my_temp_schema()

-- name: RelationFacts
-- A table ($1, an oid): its partition root, whether it is a table, and whether its own policies decide what a user sees of
-- it, or the owner of a function ($2, an oid or null); and its columns, one row each, with a kind for types of which two
-- values are equal exactly if their JSON is.
--
-- Invariant: is_restricted is as in PolicyDescription in Policies.sql; a user's role is not known here, so it counts as
-- restricted.
-- Locks: none.
select coalesce(pg_partition_root(c.oid), c.oid)::oid, c.relkind in ('r', 'p'),
       c.relrowsecurity and coalesce(not (
           o.rolsuper or o.rolbypassrls or not c.relforcerowsecurity and pg_has_role(o.oid, c.relowner, 'usage')), true),
       a.attnum, a.attname,
       case
           when a.atttypid = 'uuid'::regtype then 'uuid'
           when a.atttypid in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) then 'integer'
           when a.atttypid in ('text'::regtype, 'varchar'::regtype) and l.collisdeterministic then 'text'
       end
from pg_class c
left join pg_proc f on f.oid = $2::oid
left join pg_roles o on o.oid = f.proowner
left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_collation l on l.oid = a.attcollation
where c.oid = $1::oid
order by a.attnum

-- name: EqualityOperators
-- The operators that are Postgres' own equality of the types with a kind in RelationFacts.
-- Locks: none.
select o.oid from pg_operator o
where o.oprname = '=' and o.oprnamespace = 'pg_catalog'::regnamespace and (
    o.oprleft = 'uuid'::regtype and o.oprright = 'uuid'::regtype
    or o.oprleft = 'text'::regtype and o.oprright = 'text'::regtype
    or o.oprleft in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
        and o.oprright in ('int2'::regtype, 'int4'::regtype, 'int8'::regtype)
)
