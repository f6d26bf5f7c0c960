-- The sessions that hold up a waiting command.
-- Locks: none.

-- name: LockHolder
-- The session that has longest held a lock that conflicts with changing a trigger on a table ($1, its oid; null: all
-- tables of roost and realtime): the process, its application or user and state, when its transaction began, and its
-- last statement.
-- ShareRowExclusive, which CREATE TRIGGER takes, waits for writers; AccessExclusive, which DROP TRIGGER takes, for
-- readers as well ($2).
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

-- name: OldestWriter
-- The oldest open transaction that writes, in any database of the server, with LockHolder's columns. A prepared
-- transaction has no process.
-- Locks: none.
select t.pid, t.who, to_char(t.since, 'HH24:MI:SS'), left(regexp_replace(t.query, '\s+', ' ', 'g'), 80) from (
    select a.pid, concat_ws(', ', coalesce(nullif(a.application_name, ''), a.usename), a.state), a.xact_start, a.query
    from pg_stat_activity a where a.backend_xid is not null and a.pid <> pg_backend_pid()
    union all
    select null, '', x.prepared, null from pg_prepared_xacts x
) t (pid, who, since, query)
order by t.since limit 1

-- name: SessionWait
-- What the session with this process id ($1) waits for or works on, if known: the holder of a lock that it waits for
-- (the process, its application or user and state, when its transaction began, its last statement), or the phase and
-- the progress of an index that is being built.
-- Locks: none.
select b.pid,
       case when b.pid is not null then
           concat_ws(', ', coalesce(nullif(b.application_name, ''), b.usename), b.state) end,
       to_char(b.xact_start, 'HH24:MI:SS'), left(regexp_replace(b.query, '\s+', ' ', 'g'), 80),
       case when i.blocks_total > 0 then format('%s, %s of %s blocks', i.phase, i.blocks_done, i.blocks_total)
           else i.phase end
from pg_stat_activity a
left join lateral (
    select h.* from unnest(pg_blocking_pids(a.pid)) blocking (pid) join pg_stat_activity h on h.pid = blocking.pid
    order by h.xact_start nulls last limit 1
) b on a.wait_event_type = 'Lock'
left join pg_stat_progress_create_index i on i.pid = a.pid
where a.pid = $1::int4
