-- What the session with this process id ($1) waits for or is at, if it is known: the holder of a lock that it waits for
-- (the process, who it is, since when its transaction is open, what it last asked), or the phase of an index that is
-- being built and how much of it is done.
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
