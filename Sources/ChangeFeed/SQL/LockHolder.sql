-- Who has kept a lock for the longest that a trigger cannot be put on a table beside ($1, its oid; null: all of roost's
-- tables and those of realtime): the process, who it is, since when its transaction is open, what it last asked.
-- ShareRowExclusive, which CREATE TRIGGER takes, waits for whoever writes; AccessExclusive, which DROP TRIGGER takes,
-- for whoever reads as well ($2).
-- Locks: none.
select l.pid, concat_ws(', ', coalesce(nullif(a.application_name, ''), a.usename), a.state),
       to_char(a.xact_start, 'HH24:MI:SS'), left(regexp_replace(a.query, '\s+', ' ', 'g'), 80)
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.granted and l.pid is distinct from pg_backend_pid()
  and l.database = (select oid from pg_database where datname = current_database())
  and (l.relation = $1::oid or $1 is null and l.relation in (
      select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where n.nspname in ('roost', 'realtime')))
  and l.mode <> 'SIReadLock' and ($2::boolean or l.mode not in ('AccessShareLock', 'RowShareLock'))
order by a.xact_start nulls last limit 1
