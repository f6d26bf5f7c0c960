-- Ends activities ($1), of a user ($2) or of a hub ($3) where one is given, and returns those that had not ended.
-- Locks: their rows, by id.
with open as (
    select id from roost.push_activity
    where id = any ($1::text[]) and ended_at is null and ($2::text is null or user_id = $2)
        and ($3::text is null or node = $3)
    order by id for update
)
update roost.push_activity a set ended_at = clock_timestamp() from open o where a.id = o.id
returning {activity}
