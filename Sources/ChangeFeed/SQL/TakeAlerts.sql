-- Takes alerts that are due, at most $2, for this hub ($1) to send; where $3 is not null, of each user the oldest, and
-- none of these users. Each alert is a row, the oldest first, and behind
-- them each phone is one: joined in SQL, they are joined by nested loops, as nobody knows how many they will be.
--
-- Invariants
--   * It is its own transaction, so whoever reads the answer has them, and nobody else ever will, unless they
--     are given back (GiveBackAlerts.sql).
--   * Of a user, an alert waits for those of earlier messages (place), whatever they wait for.
--   * What another hub holds is that hub's to send as long as it lives.
--   * Whoever was in a grace window, or at another hub, and is online at a living hub by now is not alerted.
--   * No phone gets a message twice, even if another user had it the first time.
-- Locks: rows of roost.alert that nobody has locked; then new rows of roost.alert_device by their key.
with due as materialized (
    select a.message, a.user_id, a.state, a.due_at, a.expires_at
    from roost.alert a
    where a.state in ('due', 'held', 'elsewhere') and a.due_at <= statement_timestamp()
        and (a.state <> 'held' or a.node = $1 or not exists (
            select from roost.push_hub h
            where h.node = a.node and h.at > statement_timestamp() - interval '30 seconds'))
        and ($3::text[] is null or a.user_id <> all ($3))
        and not exists (
            select from roost.alert b
            where b.user_id = a.user_id and b.state in ('due', 'held', 'elsewhere')
                and case when $3::text[] is null then b.place < a.place and b.due_at > a.due_at
                    else (b.place, b.due_at, b.message) < (a.place, a.due_at, a.message) end)
    order by a.due_at, a.place
    limit $2::int
    for update of a skip locked
), taken as (
    update roost.alert a
    set node = $1, taken_at = clock_timestamp(), state = case
        when d.expires_at <= clock_timestamp() then 'expired'
        when d.state <> 'due'
            and exists (select from roost.living_user l where l.user_id = d.user_id and l.node <> $1) then 'dropped'
        else 'taken' end
    from due d
    where a.message = d.message and a.user_id = d.user_id
    returning a.message, a.user_id, a.state, a.conversation, a.variables, a.expires_at, a.due_at, a.place
), claimed as (
    insert into roost.alert_device (message, token, environment, bundle, user_id, node, registered_at)
    select t.message, d.token, d.environment, d.bundle, t.user_id, $1, d.registered_at
    from taken t join roost.push_device d on d.user_id = t.user_id and d.kind = 'alert'
    where t.state = 'taken'
    order by t.message collate pg_catalog."C", d.token collate pg_catalog."C", d.environment, d.bundle
    on conflict do nothing
    returning message, token, environment, bundle, user_id, registered_at
)
select message, user_id, state, conversation, variables, floor(extract(epoch from expires_at) * 1000)::bigint,
       null as token, null as environment, null as bundle, null::bigint as registered_at, due_at, place
from taken
union all
select message, user_id, null, null, null, null, token, environment, bundle,
       floor(extract(epoch from registered_at) * 1000)::bigint, null, null
from claimed
order by due_at nulls last, place, registered_at desc
