-- Writes down what activities are about to be sent by this hub ($1): $2 ids, $3 timestamps, $4 versions, $5 states, $6
-- whether a backend said them. Of each it answers whether it may be sent, and how the activity is where it may not.
--
-- Invariants
--   * Granted only to the owner, for an activity that has not ended, with a timestamp greater than the last.
--   * An id comes once in one statement.
--   * The rows are locked before they are judged, so of two hubs the second sees what the first has written.
-- Locks: the activities' rows, by id.
with asked as (
    select * from unnest($2::text[], $3::bigint[], $4::int[], $5::text[], $6::boolean[])
        s (id, timestamp, version, state, posted)
), locked as materialized (
    select a.* from roost.push_activity a where a.id = any ($2::text[]) order by a.id for update
), granted as (
    update roost.push_activity a set timestamp = s.timestamp, version = s.version, state = s.state, posted = s.posted
    from asked s join locked l on l.id = s.id
    where a.id = s.id and l.node = $1 and l.ended_at is null and l.timestamp < s.timestamp
    returning a.id
)
select s.id as asked, g.id is not null as is_granted, {activity}
from asked s left join granted g on g.id = s.id left join locked a on a.id = s.id
