-- A text that differs whenever what the hub knows of tables, policies and privileges may have changed.
--
-- Invariants
--   * It names the version (xmin) of every catalog row that Catalog.sql, Access.sql and the policies depend on. Two
--     transactions never leave the same xmin on a row, but for a wrap-around in between.
--   * pg_roles stands for pg_authid, which only superusers may read.
--   * It is read at most twice a second while changes flow, inside the statement that reads a window, so the window's
--     snapshot is the one it is true of.
-- Locks: none beyond those of reading the catalog.
with watched as (
    select distinct t.tgrelid as oid from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
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
    select 'partition', string_agg(concat_ws(':', i.inhrelid, i.inhparent, i.xmin), ',' order by i.inhrelid, i.inhparent)
    from pg_inherits i join watched w on w.oid = i.inhparent
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
)
select md5(string_agg(concat_ws('=', kind, part), ';' order by kind)) from parts
