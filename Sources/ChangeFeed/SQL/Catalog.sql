-- The watched tables with their columns, one row per column, in attribute order.
--
-- Invariants
--   * A table is watched if roost's triggers are on it; there is no second list that could disagree.
--   * A partition counts as its root, which is the only one reported.
--   * comparison is a case of Comparison (Sources/Matching/Table.swift). "text by bytes" only where Postgres itself
--     compares bytes; a domain compares as its base type.
--   * Columns that some versions lack (datlocprovider, colllocale) are read through to_jsonb.
-- Locks: none beyond those of reading the catalog.
with database as (
    select to_jsonb(d) ->> 'datlocprovider' as provider, datcollate,
           coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale') as locale
    from pg_database d where datname = current_database()
), watched as (
    select c.oid, n.nspname, c.relname, c.relreplident, c.relrowsecurity
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where not c.relispartition and exists (
        select from pg_trigger t join pg_proc p on p.oid = t.tgfoid join pg_namespace f on f.oid = p.pronamespace
        where t.tgrelid = c.oid and not t.tgisinternal and t.tgenabled <> 'D' and f.nspname = 'roost'
          and p.proname in ('on_insert', 'on_update', 'on_delete')
    )
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
       w.relrowsecurity as has_row_security
from watched w
left join pg_attribute a on a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
left join pg_type t on t.oid = a.atttypid
-- Only the types of pg_catalog are known by name; another schema may hold a "uuid" of its own.
left join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
    and (b.typnamespace = 'pg_catalog'::regnamespace or b.typtype = 'e')
left join collations l on l.oid = a.attcollation
left join lateral (
    select (i.indkey::int2[])[0:i.indnkeyatts - 1] as keys from pg_index i where i.indrelid = w.oid and i.indisprimary
) pk on true
left join lateral (
    select (i.indkey::int2[])[0:i.indnkeyatts - 1] as keys from pg_index i where i.indrelid = w.oid and i.indisreplident
) ri on true
order by w.oid, a.attnum
