-- The roles that clients' tokens name, and the tables they may read: for `roost init`, which creates missing roles, and
-- `roost doctor`. Everything here only reads, and works for a role with few rights.
-- Locks: none.

-- name: Administrator
-- The role that runs `roost init`: its name, whether it is a superuser, may create roles, and bypasses row level
-- security; and whether the role $1 exists (the hub's; empty: the same role), its name, and whether it is a superuser.
select quote_ident(a.rolname), a.rolsuper, a.rolcreaterole, a.rolbypassrls, h.oid is not null,
       quote_ident(coalesce(nullif($1, ''), a.rolname)), coalesce(h.rolsuper, false)
from pg_roles a left join pg_roles h on h.rolname = coalesce(nullif($1, ''), a.rolname)
where a.rolname = current_user

-- name: ClientRoles
-- The roles that Supabase's tokens name: for each, whether it exists, whether it bypasses row level security, and
-- whether the hub's role $1 may become it, by the kind of membership ($2) that SET ROLE requires: SET from Postgres 16
-- on, MEMBER before.
select quote_ident(wanted.name), r.oid is not null, coalesce(r.rolbypassrls, false),
       coalesce(pg_has_role(h.oid, r.oid, $2), false)
from unnest(array['anon', 'authenticated', 'service_role']) with ordinality wanted (name, place)
left join pg_roles r on r.rolname = wanted.name
left join pg_roles h on h.rolname = coalesce(nullif($1, ''), current_user)
order by place

-- name: TableReading
-- The rights of a role ($2; PUBLIC if it does not exist) on the table $1 (oid): the table's schema, whether the role
-- may use it, whether it may read any column of the table; and whether the table has row level security.
select quote_ident(n.nspname), has_schema_privilege(coalesce(r.rolname, 'public'), n.oid, 'usage'),
       has_any_column_privilege(coalesce(r.rolname, 'public'), c.oid, 'select'), c.relrowsecurity
from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_roles r on r.rolname = $2
where c.oid = $1::oid

-- name: TableName
-- The schema and the full name of a table, as SQL writes them, from its name ($1), if it cannot be looked up.
select quote_ident(part[1]), (select string_agg(quote_ident(p), '.' order by place) from unnest(part) with ordinality u (p, place))
from parse_ident($1) part

-- name: OwnRoles
-- The operator's own roles that tokens may name: those without a login that were granted to this session's role.
select quote_ident(r.rolname)
from pg_auth_members m join pg_roles r on r.oid = m.roleid
where m.member = (select oid from pg_roles where rolname = current_user) and not r.rolcanlogin
  and r.rolname not in ('anon', 'authenticated', 'service_role') and r.rolname !~ '^pg_'
order by 1

-- name: UnreadableTables
-- Those of the tables ($1, oids) that none of the clients' roles may read, including the operator's own roles. Tables
-- that another table's scope depends on are left out: policies read them, and clients need not.
select format('%I.%I', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = any ($1::oid[]) and not c.relispartition
  and not exists (select from roost.scope s where c.oid = any (s.members) and s.relid <> c.oid)
  and not exists (
    select from pg_roles r
    where (r.rolname in ('anon', 'authenticated', 'service_role')
           or not r.rolcanlogin and r.rolname !~ '^pg_' and exists (
               select from pg_auth_members m
               where m.roleid = r.oid and m.member = (select oid from pg_roles where rolname = current_user)))
      and has_schema_privilege(r.oid, n.oid, 'usage') and has_any_column_privilege(r.oid, c.oid, 'select'))
order by 1
