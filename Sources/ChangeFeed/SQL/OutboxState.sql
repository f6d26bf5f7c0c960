-- How large the outbox is: living and dead rows as the statistics have them, bytes with indexes and TOAST, the age of
-- the oldest change in seconds (null where there is none), whether autovacuum is on, and whether it is off for this table.
-- The oldest is the first by the primary key, which is the order of transactions and nearly that of time.
-- Locks: none.
select coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), pg_total_relation_size(c.oid),
       (select extract(epoch from clock_timestamp() - at)::bigint from roost.change order by xid, id limit 1),
       current_setting('autovacuum') = 'on', not coalesce(
           (select o.option_value::boolean from pg_options_to_table(c.reloptions) o
            where o.option_name = 'autovacuum_enabled'), true)
from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
where c.oid = 'roost.change'::regclass
