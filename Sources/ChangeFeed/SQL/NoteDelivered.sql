-- Notes up to which timestamp ($2) APNs took the states of activities ($1), by id.
-- Locks: the activities' rows, by id.
with said as (
    select id, timestamp from unnest($1::text[], $2::bigint[]) s (id, timestamp)
), locked as materialized (
    select a.id from roost.push_activity a where a.id = any ($1::text[]) order by a.id for update
)
update roost.push_activity a set delivered = greatest(a.delivered, s.timestamp)
from said s join locked l on l.id = s.id
where a.id = s.id
