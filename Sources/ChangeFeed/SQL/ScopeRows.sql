-- The statements that draw sample rows of a table ($1, an oid) with a scope column ($2): which rows, at most 200 and at
-- most ten of a scope value, of values that have several; and which of those at the places ($1 of that statement) are
-- visible. A row is told by its partition and place, so that no key is needed; both statements run in one snapshot.
-- Locks: none.
select format(
    'with sampled as (select %1$I::text as scope, tableoid, ctid from %2$I.%3$I where %1$I is not null limit 20000), '
    'numbered as ('
    '    select *, count(*) over (partition by scope) as many, row_number() over (partition by scope) as n from sampled'
    ') '
    'select scope, tableoid, ctid from numbered where many > 1 and n <= 10 order by scope, n limit 200',
    $2::text, n.nspname, c.relname),
    format('select tableoid, ctid from %1$I.%2$I where ctid = any ($1::tid[])', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = $1::oid
