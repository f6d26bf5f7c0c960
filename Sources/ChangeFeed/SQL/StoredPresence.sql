-- Who was present at this hub ($1) when its last process ended.
-- Locks: none.
select ref, topic, private, key, made_key, user_id, payload, app_state from roost.presence where node = $1
