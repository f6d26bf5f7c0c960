-- With what role and claims each of some users ($1) registered a phone or an activity last.
-- Locks: none.
select distinct on (user_id) user_id, role, claims
from (
    select user_id, role, claims, registered_at from roost.push_device where user_id = any ($1::text[])
    union all
    select user_id, role, claims, registered_at from roost.push_activity
    where user_id = any ($1::text[]) and ended_at is null
) r
order by user_id, registered_at desc
