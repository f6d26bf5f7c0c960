-- Makes this hub ($1) the owner of activities of other hubs: of the users $2; or of the one activity $4; or, where $3
-- is true, of users who are online here and not at the hub that has them; or else of those whose hub gave no sign for
-- 30 s.
--
-- Invariant: whoever sends an activity something asks for it first (StampActivities.sql), so a hub that is not the
-- owner any more, and does not know it yet, sends nothing.
-- Locks: the activities' rows; what somebody else has locked, and what is more than 5,000, is left for the next time.
with theirs as (
    select id from roost.push_activity a
    where a.node <> $1 and a.ended_at is null and case
        when $2::text[] is not null then a.user_id = any ($2)
        when $4::text is not null then a.id = $4
        when $3::boolean then
            exists (select from roost.online_user o where o.node = $1 and o.user_id = a.user_id)
            and not exists (select from roost.online_user o where o.node = a.node and o.user_id = a.user_id)
        else not exists (
            select from roost.push_hub h where h.node = a.node and h.at > statement_timestamp() - interval '30 seconds')
        end
    order by id limit 5000
    for update skip locked
)
update roost.push_activity a set node = $1 from theirs t where a.id = t.id
returning {activity}
