-- realtime.messages as those need it who ask its policies: one row, or none where there is no such table.
--
-- Invariants
--   * version differs whenever the table, its columns, its policies, a role or a privilege does: it names the xmin of
--     every catalog row that they depend on. pg_roles stands for pg_authid, which only superusers may read.
--   * now and id are for probe rows (Sources/ChangeFeed/Authority/ProbeRows.swift); the column's times are UTC.
-- Locks: none beyond those of reading the catalog.
with messages as (
    select c.oid, c.xmin, n.oid as namespace, n.xmin as namespace_version
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'realtime' and c.relname = 'messages' and c.relkind in ('r', 'p')
), parts (kind, part) as (
    select 'table', concat_ws(':', oid, xmin, namespace, namespace_version) from messages
    union all
    select 'attribute', string_agg(concat_ws(':', a.attnum, a.xmin), ',' order by a.attnum)
    from messages m join pg_attribute a on a.attrelid = m.oid where a.attnum > 0
    union all
    select 'policy', string_agg(concat_ws(':', p.oid, p.xmin), ',' order by p.oid)
    from messages m join pg_policy p on p.polrelid = m.oid
    union all
    select 'member', string_agg(concat_ws(':', m.roleid, m.member, m.xmin), ',' order by m.roleid, m.member, m.xmin::text)
    from pg_auth_members m
    union all
    select 'role', string_agg(concat_ws(':', r.oid, r.rolname, r.rolsuper, r.rolbypassrls, r.rolinherit), ',' order by r.oid)
    from pg_roles r
)
select
    m.oid,
    (select json_agg(a.attname order by a.attnum) from pg_attribute a
        where a.attrelid = m.oid and a.attnum > 0 and not a.attisdropped) as columns,
    (select md5(string_agg(concat_ws('=', kind, part), ';' order by kind)) from parts) as version,
    to_json(clock_timestamp() at time zone 'UTC') as now,
    to_json(gen_random_uuid()) as id
from messages m
