-- What roles may read of the watched tables: one row per role and table, and one with a null table for a role that may
-- read none. $1: the roles' names. A name that is no role has no row.
--
-- Invariants
--   * is_restricted is what row_security_active() tells of the current user, worked out for another: superusers and
--     BYPASSRLS are beyond policies, and so is whoever has the owner's privileges unless RLS is forced.
--   * columns is null where the role may SELECT the table as a whole.
-- Locks: none beyond those of reading the catalog.
with roles as (
    select r.oid, r.rolname, r.rolsuper or r.rolbypassrls as is_beyond, pg_has_role(r.oid, 'member') as is_assumable
    from pg_roles r where r.rolname = any ($1::name[])
), watched as (
    select distinct c.oid, c.relowner, c.relnamespace, c.relrowsecurity, c.relforcerowsecurity
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_class c on c.oid = t.tgrelid
    where not t.tgisinternal and t.tgenabled <> 'D' and p.pronamespace = to_regnamespace('roost')
      and p.proname in ('on_insert', 'on_update', 'on_delete') and not c.relispartition
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
