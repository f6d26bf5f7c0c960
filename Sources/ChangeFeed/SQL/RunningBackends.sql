-- Which of these backends ($1: their process ids) still run, of those that were given up on so many milliseconds ago ($2, in
-- the same order). A process id is used again: whoever began after that is somebody else.
-- Locks: none.
select a.pid
from unnest($1::int4[], $2::int8[]) as given_up (pid, milliseconds)
join pg_stat_activity a on a.pid = given_up.pid
    and a.backend_start < clock_timestamp() - given_up.milliseconds * interval '1 ms'
