-- The alerts that this hub ($1) held when its last process ended wait at least until a moment ($2, milliseconds since
-- 1970): its users have time to come back.
-- Locks: their rows, by (message, user_id) bytewise.
with held as (
    select message, user_id from roost.alert
    where state = 'held' and node = $1 and due_at < to_timestamp($2::bigint / 1000.0)
    order by message collate pg_catalog."C", user_id collate pg_catalog."C"
    for update
)
update roost.alert a set due_at = to_timestamp($2::bigint / 1000.0) from held h
where a.message = h.message and a.user_id = h.user_id
