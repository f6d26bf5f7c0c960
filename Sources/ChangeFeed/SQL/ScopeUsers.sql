-- The statements that draw values which may be users' ids, one per column of the members tables ($3, oids) and of the
-- table itself ($1, an oid) other than the scope column ($2): first the members', of them first those that are uuids.
-- Where a table has the scope column too, its rows of the drawn scope values ($1 of the statement, text[]) are drawn
-- from.
-- Locks: none.
select format(
    'select distinct %1$I::text from ('
    '    select %1$I from %2$I.%3$I where %1$I is not null and %4$s limit 200'
    ') sampled limit 20',
    a.attname, n.nspname, c.relname,
    case when s.attname is null then '$1::text[] is not null' else format('%I::text = any ($1::text[])', s.attname) end)
from unnest(array_append($3::oid[], $1::oid)) with ordinality t (relid, place)
join pg_class c on c.oid = t.relid
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attname <> $2
    and a.atttypid in ('uuid'::regtype, 'text'::regtype, 'varchar'::regtype, 'int4'::regtype, 'int8'::regtype)
left join pg_attribute s on s.attrelid = c.oid and s.attname = $2 and s.attnum > 0 and not s.attisdropped
order by t.relid = $1::oid, a.atttypid <> 'uuid'::regtype, t.place, a.attnum
limit 12
