-- The sessions that have a share of the name with the doorbell $1 (ClaimNode.sql), but for this one: one of each hub
-- that is connected under it. When they last did something is null where this role may not know.
-- Locks: none.
select l.pid, case when a.client_addr is not null then 'at ' || host(a.client_addr)
           when a.client_port = -1 then 'on Postgres'' own machine' else 'elsewhere' end,
       to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), a.state_change
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.classid = 1919905649 and l.objid = $1::int4::oid and l.objsubid = 2 and l.granted
  and l.database = (select oid from pg_database where datname = current_database()) and l.pid <> pg_backend_pid()
order by a.backend_start, l.pid
