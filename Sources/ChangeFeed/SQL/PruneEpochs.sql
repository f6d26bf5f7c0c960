-- Deletes epochs of which no cursor can be younger than the retention ($1, seconds): those whose hub had written another
-- by then.
-- Locks: the rows it deletes.
delete from roost.epoch e
where e.id <> 0 and e.made_at < clock_timestamp() - make_interval(secs => $1::float8) and exists (
    select from roost.epoch n
    where n.node = e.node and n.born > e.born and n.made_at < clock_timestamp() - make_interval(secs => $1::float8)
)
