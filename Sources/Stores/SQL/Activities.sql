-- Live Activities: registered by users, owned by one hub each, stamped before they are sent something.
--
-- Invariants
--   * Only the owner sends an activity something, and asks for it first (StampActivities).
-- Lock order: rows of roost.push_activity by id.

-- name: RegisterActivity
-- Notes an activity ($1) of a user ($2, of the session $3, with the role $4 and the claims $5) with its token ($6, $7
-- environment, $8 bundle) and what it is about ($9), to be updated by the hub $10.
--
-- Invariants
--   * Only its own user replaces the token of an activity; there is no row in the answer otherwise.
--   * What the activity was sent last stays, so that timestamps go on where they were, and so does what it is about
--     where nothing is said of that.
--   * An environment that Apple has named stays: the next token is of the same app on the same phone.
--   * A user has no more than $11 activities that have not ended; there is no row in the answer otherwise.
-- Locks: the activity's row.
insert into roost.push_activity as a
    (id, user_id, session, role, claims, token, environment, bundle, conversation, node)
select $1, $2, $3, $4, $5::jsonb - '{exp,iat}'::text[], $6, $7, $8, $9, $10
where (select count(*) from roost.push_activity b where b.user_id = $2 and b.ended_at is null and b.id <> $1) < $11::int
on conflict (id) do update
set session = excluded.session, role = excluded.role, claims = excluded.claims, token = excluded.token,
    environment = case
        when a.environment_found and a.bundle = excluded.bundle then a.environment else excluded.environment end,
    environment_found = a.environment_found and a.bundle = excluded.bundle, bundle = excluded.bundle,
    conversation = coalesce(excluded.conversation, a.conversation), node = excluded.node,
    registered_at = clock_timestamp(), ended_at = null
where a.user_id = excluded.user_id
returning {activity}

-- name: FindActivities
-- The activity with an id ($1), ended or not, or those of a user ($2) or of a hub ($3) that have not ended.
-- Two of the parameters are null; as they are known when the statement is planned, the index of the third serves.
-- Locks: none.
select {activity} from roost.push_activity a
where ($1::text is null or a.id = $1) and ($2::text is null or a.user_id = $2) and ($3::text is null or a.node = $3)
    and ($1 is not null or a.ended_at is null)
order by a.registered_at, a.id

-- name: EndActivities
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

-- name: AdoptActivities
-- Makes this hub ($1) the owner of activities of other hubs: of the users $2; or of the one activity $4; or, where $3
-- is true, of users who are online here and not at the hub that has them; or else of those whose hub gave no sign for
-- 30 s.
--
-- Invariants
--   * Whoever sends an activity something asks for it first (StampActivities), so a hub that is not the owner any more,
--     and does not know it yet, sends nothing.
--   * Of hubs that adopt at once, one gets each activity: a row that another hub took since this statement's snapshot
--     has another owner than the one that was judged. (Judging again what was locked would not do: the snapshot may not
--     have the hub that took it, so it would pass for dead.)
-- Locks: the activities' rows; what somebody else has locked, and what is more than 5,000, is left for the next time.
with judged as materialized (
    select id, node from roost.push_activity a
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
), theirs as (
    select a.id from roost.push_activity a join judged j on j.id = a.id and j.node = a.node
    where a.ended_at is null
    order by a.id
    for update of a skip locked
)
update roost.push_activity a set node = $1 from theirs t where a.id = t.id
returning {activity}

-- name: StampActivities
-- Writes down what activities are about to be sent by this hub ($1): $2 ids, $3 timestamps, $4 versions, $5 states, $6
-- whether a backend said them, $7 what it posted, if that is not the state. Of each it answers whether it may be sent, and how the activity is where it may not.
--
-- Invariants
--   * Granted only to the owner, for an activity that has not ended, with a timestamp greater than the last.
--   * An id comes once in one statement.
--   * The rows are locked before they are judged, so of two hubs the second sees what the first has written.
-- Locks: the activities' rows, by id.
with asked as (
    select * from unnest($2::text[], $3::bigint[], $4::int[], $5::text[], $6::boolean[], $7::text[])
        s (id, timestamp, version, state, posted, post)
), locked as materialized (
    select a.* from roost.push_activity a where a.id = any ($2::text[]) order by a.id for update
), granted as (
    update roost.push_activity a
    set timestamp = s.timestamp, version = s.version, state = s.state, posted = s.posted, post = s.post
    from asked s join locked l on l.id = s.id
    where a.id = s.id and l.node = $1 and l.ended_at is null and l.timestamp < s.timestamp
    returning a.id
)
select s.id as asked, g.id is not null as is_granted, {activity}
from asked s left join granted g on g.id = s.id left join locked a on a.id = s.id

-- name: KeepPosts
-- Writes down what backends posted ($3) of activities ($2) of this hub ($1).
-- Locks: the activities' rows, by id.
with said as (
    select id, post from unnest($2::text[], $3::text[]) s (id, post)
), locked as materialized (
    select a.id from roost.push_activity a
    where a.id = any ($2::text[]) and a.node = $1 and a.ended_at is null
    order by a.id for update
)
update roost.push_activity a set posted = true, post = s.post
from said s join locked l on l.id = s.id
where a.id = s.id

-- name: NoteDelivered
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

-- name: PruneActivities
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

-- name: BearerOfActivity
-- Whose an activity ($1) is, what it is about, and with what role and claims it was registered.
-- Locks: none.
select user_id, conversation, role, claims from roost.push_activity where id = $1 and ended_at is null

-- name: BecomeUser
-- Begins a transaction as a user: live_activity.facts is the operator's statement, and row level security decides what
-- it shows. $1 is the role, $2 the claims.
select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)
