-- The authority's reads of realtime.messages.

-- name: SessionOfAuthority
-- The settings of the session that reads for private channels, besides Sessions.sql.
-- row_security off: a query whose rows policies would hide from the hub's own role fails instead.
-- statement_timeout: below the hub's own limit (AuthoritySession.limit), so that a slow replay ends by itself and the
-- session continues.
set default_transaction_read_only = on;
set statement_timeout = '1500ms';
set lock_timeout = '1200ms';
set row_security = off;
set jit = off;
set max_parallel_workers_per_gather = 0;

-- name: MessagesTable
-- realtime.messages with everything needed to evaluate its policies: one row, or none if there is no such table.
--
-- Invariants
--   * version differs whenever the table, its columns, its policies, a role or a privilege does: it names the xmin of every
--     catalog row that they depend on. pg_roles stands for pg_authid, which only superusers may read.
--   * now and id are for probe rows (Sources/ChangeFeed/Authority/AuthorityProbes.swift); the column's times are UTC.
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

-- name: MessagesReader
-- True if a role ($2) has the privileges that a SELECT from realtime.messages ($1: its oid) needs besides its policies. No
-- row if there is no such role. The id stands for the row, as in the original's probes.
-- Locks: none.
select has_schema_privilege(r.oid, c.relnamespace, 'usage') and has_column_privilege(r.oid, c.oid, 'id', 'select')
from pg_roles r cross join pg_class c
where r.rolname::text = $2 and c.oid = $1::oid

-- name: Replay
-- The newest messages of one private channel ($1: its topic) since a time ($2: milliseconds since 1970), at most $3, newest
-- first.
--
-- Invariants
--   * Read with the hub's own rights, after the policies have admitted the user. The session has row_security off: if
--     policies would hide rows from the hub itself, this fails rather than leave something out.
--   * Nothing from more than a minute ahead, so that clocks which differ hide nothing, and a partitioned table is not
--     searched to its end.
--   * Older tables of Supabase's have no binary_payload, which is why it is not named as a column.
-- Locks: none.
select m.id, m.event, m.payload, to_jsonb(m) ->> 'binary_payload'
from realtime.messages m
where m.topic = $1 and m.private is true and m.extension = 'broadcast'
  and m.inserted_at >= to_timestamp($2::float8 / 1000) at time zone 'UTC'
  and m.inserted_at < clock_timestamp() at time zone 'UTC' + interval '1 minute'
order by m.inserted_at desc, m.id desc
limit $3::int

-- name: ReplayUnexpired
-- The same for a table with a column for the time when a row expires.
-- Locks: none.
select m.id, m.event, m.payload, to_jsonb(m) ->> 'binary_payload'
from realtime.messages m
where m.topic = $1 and m.private is true and m.extension = 'broadcast'
  and m.inserted_at >= to_timestamp($2::float8 / 1000) at time zone 'UTC'
  and m.inserted_at < clock_timestamp() at time zone 'UTC' + interval '1 minute'
  and (m.expires_at is null or m.expires_at > clock_timestamp() at time zone 'UTC')
order by m.inserted_at desc, m.id desc
limit $3::int
