-- The hubs of this database: the name, the doorbell, how many are connected under the name, how long ago in seconds it
-- last stored its place (null: never), when that was, and whether writers ring for it (roost.must_ring's body names its
-- doorbell).
-- Locks: none.
select n.name, n.doorbell, (
           select count(*) from pg_locks l
           where l.locktype = 'advisory' and l.classid = 1919905649 and l.objid = n.doorbell::oid and l.objsubid = 2
             and l.granted and l.database = (select oid from pg_database where datname = current_database())
       ),
       extract(epoch from clock_timestamp() - c.stored_at)::bigint, to_char(c.stored_at, 'YYYY-MM-DD HH24:MI:SS TZ'),
       coalesce(position(format('(1919905651, %s)', n.doorbell) in p.prosrc) > 0, false), quote_literal(n.name)
from roost.node n
left join roost.cursor c on c.node = n.name
left join pg_proc p on p.oid = to_regprocedure('roost.must_ring()')
order by n.name
