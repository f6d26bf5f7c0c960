-- Forgets activities that ended more than $1 seconds ago, and hubs that gave no sign for as long.
-- Locks: their rows; what somebody else has locked is left for the next time.
with old as (
    select id from roost.push_activity
    where ended_at < statement_timestamp() - $1::bigint * interval '1 second'
    order by id limit $2::int
    for update skip locked
), hubs as (
    delete from roost.push_hub where at < statement_timestamp() - $1::bigint * interval '1 second'
)
delete from roost.push_activity a using old o where a.id = o.id
