-- The tables of a publication ($1), partitions as their roots; one row with null where the publication has none, no row
-- where there is no such publication.
-- Locks: none.
select distinct case when c.oid is not null then quote_ident(n.nspname) || '.' || quote_ident(c.relname) end
from pg_publication p
left join pg_publication_tables m on m.pubname = p.pubname
left join pg_class l on l.oid = to_regclass(quote_ident(m.schemaname) || '.' || quote_ident(m.tablename))
left join pg_class c on c.oid = coalesce(pg_partition_root(l.oid), l.oid)
left join pg_namespace n on n.oid = c.relnamespace
where p.pubname = $1
order by 1
