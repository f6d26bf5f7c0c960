-- Who is to hear of changes, by the operator's statement.
-- Locks: none of roost's.

-- name: BeginReading
-- Begins a transaction for an audience statement, which is the operator's: it writes nothing, and nobody waits for it
-- for long.
begin read only;
set local statement_timeout = '2s';
set local lock_timeout = '500ms'

-- name: AskAudience
-- Who is to hear of some changes: what the operator's statement (alerts.audience) says of users who have a phone or an
-- activity. $1 is the statement's: an array of {"row", "schema", "table", "record"}.
--
-- Invariants
--   * Of users without a registration nothing is fetched, nor what the statement says of them put into JSON.
--   * Registrations are looked up one by one by their index, however few rows the planner expects there.
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
-- What columns the operator's statement has. $1 is the statement's.
-- Locks: none of roost's.
select a.*
from (
{statement}
) a
limit 0

-- name: FindBearers
-- With what role and claims each of some users ($1) registered a phone or an activity last. What was made up for a phone that the
-- application keeps counts where the user registered nothing.
-- Locks: none.
select distinct on (user_id) user_id, role, claims
from (
    select user_id, role, claims, registered_at, from_app from roost.push_device where user_id = any ($1::text[])
    union all
    select user_id, role, claims, registered_at, false from roost.push_activity
    where user_id = any ($1::text[]) and ended_at is null
) r
order by user_id, from_app, registered_at desc
