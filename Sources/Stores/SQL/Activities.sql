-- Live Activities: registered by users, owned by one hub each, stamped before each send.
--
-- Invariants
--   * Only the owner sends to an activity, and stamps it first (StampActivities).
-- Lock order: rows of roost.push_activity by id.

-- name: RegisterActivity
-- Registers an activity ($1) of a user ($2, of the session $3, with the role $4 and the claims $5) with its token ($6,
-- $7 environment, $8 bundle) and its conversation ($9), to be updated by the hub $10.
--
-- Invariants
--   * Only its own user replaces the token of an activity; otherwise the answer has no row.
--   * The last state sent to the activity stays, so that timestamps continue, and so does its conversation if none is
--     given.
--   * An environment that Apple has confirmed stays: the next token is of the same app on the same phone.
--   * A user has at most $11 activities that have not ended; beyond that the answer has no row.
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
-- Two of the parameters are null; as they are known when the statement is planned, the index for the third is used.
-- Locks: none.
select {activity} from roost.push_activity a
where ($1::text is null or a.id = $1) and ($2::text is null or a.user_id = $2) and ($3::text is null or a.node = $3)
    and ($1 is not null or a.ended_at is null)
order by a.registered_at, a.id

-- name: EndActivities
-- Ends activities ($1), only those of a user ($2) or of a hub ($3) if one is given, and returns those that had not
-- ended.
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
-- Makes this hub ($1) the owner of activities of other hubs: of the users $2; or of the one activity $4; or, if $3 is
-- true, of users who are online here and not at the owning hub; or else of hubs that gave no sign of life for 30 s.
--
-- Invariants
--   * A hub stamps an activity before each send (StampActivities), so a hub that has lost the ownership without knowing
--     it sends nothing.
--   * If several hubs adopt at once, one gets each activity: a row that another hub took since this statement's
--     snapshot has another owner than the one that was checked. (Checking again after locking would not help: the
--     snapshot may lack the hub that took it, which would then pass for dead.)
-- Locks: the activities' rows; those that another session has locked, and those beyond 5,000, are left for the next
-- time.
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
-- Records what this hub ($1) is about to send to activities: $2 ids, $3 timestamps, $4 versions, $5 states, $6 whether
-- a backend posted them, $7 the post, if it is not the state. Returns for each whether it may be sent, and the
-- activity's current row if it may not.
--
-- Invariants
--   * Granted only to the owner, for an activity that has not ended, with a timestamp greater than the last.
--   * An id occurs once in one statement.
--   * The rows are locked before they are checked, so of two hubs the second sees what the first has written.
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
-- Stores backends' posts ($3) to activities ($2) of this hub ($1).
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
-- Stores the timestamp ($2) up to which APNs accepted the states of activities ($1), by id.
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
-- Deletes activities that ended more than $1 seconds ago, at most $2 at a time, and hubs that gave no sign of life for
-- as long.
-- Locks: their rows; those that another session has locked are left for the next time.
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
-- An activity's ($1) user and conversation, and the role and claims with which it was registered.
-- Locks: none.
select user_id, conversation, role, claims from roost.push_activity where id = $1 and ended_at is null

-- name: BecomeUser
-- Begins a transaction as a user: live_activity.facts is the operator's statement, and row level security decides what
-- it shows. $1 is the role, $2 the claims.
select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)
