-- What decides whether a role may read or write the rows of a table: always one row.
-- $1: the table's oid. $2: the role's name. $3: 'r' for SELECT, 'a' for INSERT (the letters of pg_policy.polcmd).
--
-- Invariants
--   * search_path is pg_catalog, pg_temp: pg_get_expr() then qualifies every other name.
--   * is_restricted is what row_security_active() tells of the current user, worked out for another (check_enable_rls
--     in Postgres' rls.c): superusers and BYPASSRLS are beyond policies, and so is whoever has the privileges of the
--     table's owner, unless row level security is forced.
--   * Which policies count, and which of their expressions, is Postgres' choice too (rowsecurity.c): those for the
--     command and for all commands; for INSERT the check, or where there is none the condition; a policy that has
--     neither is no policy.
--   * columns may name too many (what the policy's other expression reads, or a sub-query of the table itself), never
--     too few: a reference to the whole row or to a system column, which leaves no trace in pg_depend, sets
--     reads_row. There, too, a sub-query may raise it without need.
--   * columns_sent is what a record must have: as a domain may refuse to be null, a table that has one gets whole rows.
--     marks tells each of them by number, type and name: a column that was renamed, dropped or made anew is another.
--   * Names are compared as text: a cast to name would cut a longer one down to some other role's.
-- Locks: none beyond those of reading the catalog.
with asked as (
    select c.oid, c.relname, c.relnamespace, c.relowner, c.relrowsecurity, c.relforcerowsecurity, r.oid as role,
           r.rolsuper or r.rolbypassrls as is_beyond
    from (values ($1::oid, $2::text)) as question (relid, role)
    left join pg_class c on c.oid = question.relid
    left join pg_roles r on r.rolname::text = question.role
), policies as (
    select p.oid, p.polname, p.polpermissive, p.polrelid,
           case when $3::text = 'a' then coalesce(p.polwithcheck, p.polqual) else p.polqual end as tree
    from asked join pg_policy p on p.polrelid = asked.oid
    where p.polcmd in ('*', $3::"char") and (
        0::oid = any (p.polroles)
        or exists (select from unnest(p.polroles) as member (oid) where pg_has_role(asked.role, member.oid, 'usage'))
    )
), expressions as (
    select oid, polname, polpermissive, pg_get_expr(tree, polrelid) as text, tree::text ~ ':varattno (0|-)' as reads_row
    from policies where tree is not null
), named as (
    select coalesce(o.pronamespace, t.typnamespace, c.relnamespace, q.oprnamespace, l.collnamespace) as oid
    from expressions e
    join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = e.oid
    left join pg_proc o on d.refclassid = 'pg_proc'::regclass and o.oid = d.refobjid
    left join pg_type t on d.refclassid = 'pg_type'::regclass and t.oid = d.refobjid
    left join pg_class c on d.refclassid = 'pg_class'::regclass and c.oid = d.refobjid
    left join pg_operator q on d.refclassid = 'pg_operator'::regclass and q.oid = d.refobjid
    left join pg_collation l on d.refclassid = 'pg_collation'::regclass and l.oid = d.refobjid
), whole as (
    select coalesce((select bool_or(reads_row) from expressions), false) as reads_row
), attributes as (
    select a.attname, concat_ws(':', a.attnum, a.atttypid, a.attname) as mark, t.typtype = 'd' as is_domain,
           exists (
               select from expressions e
               join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = e.oid
                   and d.refclassid = 'pg_class'::regclass and d.refobjid = a.attrelid and d.refobjsubid = a.attnum
           ) as is_read
    from asked
    join pg_attribute a on a.attrelid = asked.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
), columns as (
    select attname, mark, is_read,
           is_read or whole.reads_row or exists (select from attributes where is_domain) as is_sent
    from attributes cross join whole
)
select
    asked.role is not null as role_exists,
    coalesce(pg_has_role(asked.role, case when current_setting('server_version_num')::int >= 160000 then 'set'
        else 'member' end), false) as is_assumable,
    current_user as hub,
    has_database_privilege(current_database(), 'temp') as may_create_functions,
    n.nspname as table_schema,
    asked.relname as table_name,
    coalesce(has_schema_privilege(asked.role, n.oid, 'usage'), false) as may_use_schema,
    $3::text <> 'a' or coalesce(has_any_column_privilege(asked.role, asked.oid, 'insert'), false) as may_write,
    asked.relrowsecurity and not asked.is_beyond
        and (asked.relforcerowsecurity or not pg_has_role(asked.role, asked.relowner, 'usage')) as is_restricted,
    (select string_agg(text, ' OR ' order by polname) from expressions where polpermissive) as permissive,
    (select string_agg(text, ' AND ' order by polname) from expressions where not polpermissive) as restrictive,
    whole.reads_row,
    (select json_agg(attname) from columns where is_read) as columns_read,
    (select json_agg(attname) from columns where is_sent) as columns_sent,
    (select coalesce(array_agg(mark), '{}')::text from columns where is_sent) as marks,
    (
        select string_agg(distinct quote_ident(s.nspname), ', ')
        from named join pg_namespace s on s.oid = named.oid
        where not has_schema_privilege(asked.role, s.oid, 'usage')
    ) as unusable_schemas
from asked cross join whole left join pg_namespace n on n.oid = asked.relnamespace
