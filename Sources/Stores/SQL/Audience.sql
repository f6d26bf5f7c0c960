-- The users to notify of changes, by the operator's statement.
-- Locks: none of roost's.

-- name: BeginReading
-- Begins a transaction for an audience statement, which is the operator's: it may write nothing, and must end soon.
begin read only;
set local statement_timeout = '2s';
set local lock_timeout = '500ms'

-- name: AskAudience
-- The users to notify of some changes: the answer of the operator's statement (alerts.audience) for users who have a
-- phone or an activity. $1 is the statement's parameter: an array of {"row", "schema", "table", "record"}.
--
-- Invariants
--   * For users without a registration nothing is fetched, and the statement's columns are not converted to JSON.
--   * Registrations are looked up one by one by their index, however few rows the planner expects.
-- Locks: none of roost's.
select m.change, m.user_id, m.variables - 'row', m.variables ->> 'muted', m.variables ->> 'badge', d.found
from (
    select a.row::int as change, a.user_id::text as user_id, to_jsonb(a) as variables
    from (
{statement}
    ) a
) m
left join lateral (
    select true as found from roost.push_device d where d.user_id = m.user_id and d.kind = 'alert' limit 1
) d on true
left join lateral (
    select true as found from roost.push_user u where u.user_id = m.user_id and d.found is null limit 1
) u on true
where d.found or u.found

-- name: AudienceColumns
-- The columns of the operator's statement. $1 is the statement's parameter.
-- Locks: none of roost's.
select a.*
from (
{statement}
) a
limit 0

-- name: FindBearers
-- The role and claims with which each of some users ($1) last registered a phone or an activity. Those made up for a
-- phone that the application keeps count only if the user registered nothing.
-- Locks: none.
select distinct on (user_id) user_id, role, claims
from (
    select user_id, role, claims, registered_at, from_app from roost.push_device where user_id = any ($1::text[])
    union all
    select user_id, role, claims, registered_at, false from roost.push_activity
    where user_id = any ($1::text[]) and ended_at is null
) r
order by user_id, from_app, registered_at desc
