-- When the next alert falls due that this hub ($1) may take, in milliseconds since 1970, rounded up.
-- Locks: none.
select ceil(extract(epoch from due_at) * 1000)::bigint from roost.alert
where state in ('due', 'held', 'elsewhere') and (state <> 'held' or node = $1)
order by due_at limit 1
