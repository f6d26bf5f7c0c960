-- Tables of which there are changes among the newest 10,000 of the outbox, and that have no trigger of roost's (any
-- more): unwatched, or made anew without them, as by a restore. The oid, and the name if there is such a table.
-- Messages of channels ('M') have a trigger of their own, which realtime's check looks at; 'X' is the outbox itself.
-- Locks: none.
with newest as materialized (
    select relid, op from roost.change order by xid desc, id desc limit 10000
)
select distinct e.relid, case when c.oid is not null then format('%I.%I', n.nspname, c.relname) end
from newest e
left join pg_class c on c.oid = e.relid
left join pg_namespace n on n.oid = c.relnamespace
where e.op not in ('M', 'X') and not exists (
    select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = e.relid and not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
)
order by 1
