-- How much the outbox holds: about how many rows (as vacuum or analyze counted them last), bytes with what is stored apart,
-- and the age of the oldest in seconds. Read now and then, while somebody reads the metrics.
--
-- The oldest is the first of the primary key: a transaction that began earlier may have written later, by less than it
-- lasted. Locks: none.
select greatest(reltuples, 0)::bigint, pg_table_size(oid),
       coalesce((select extract(epoch from clock_timestamp() - at) from roost.change order by xid, id limit 1), 0)
from pg_class
where oid = 'roost.change'::regclass
