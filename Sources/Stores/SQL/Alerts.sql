-- The queue of alerts, which all hubs of a database share.
--
-- Invariants
--   * An alert is one row for each message and user, whichever hubs put it there (EnqueueAlerts).
--   * It is sent by who took it (TakeAlerts), and never again, unless it never left (GiveBackAlerts).
-- Lock order: rows of roost.alert by (message, user_id) bytewise, then rows of roost.alert_device.

-- name: EnqueueAlerts
-- Puts alerts into the queue, as this hub ($1) sees the users: $2 messages, $3 users, $4 conversations, $5 variables,
-- $6 when they expire and $8 until when they are held (milliseconds since 1970), $7 states (due, held, dropped), $9 the places of the
-- messages in the outbox, by which a user's alerts are sent, $10 the reasons, $11 what read positions are compared with. Returns those
-- that are new or were put right, with whether they wait for another hub and whether they are new.
--
-- Invariants
--   * Every hub that reads a row puts its alerts here, with what it knows of its own sockets: that the user has the message there
--     (dropped) ends an alert that waits; that it is not known yet (held) puts it off; that it has nothing against it (due) is noted
--     (said). An alert is due when every living hub where the user is online has said so: elsewhere until then.
--   * What is for whoever it names (always) waits for nobody.
--   * What is taken, expired or dropped stays so. A hub that reads a row again changes nothing (DecideAlerts does).
--   * Alerts become due in the order of the arrays.
-- Locks: their rows, by (message, user_id) bytewise.
with draft as (
    select distinct on (message collate pg_catalog."C", user_id collate pg_catalog."C") *
    from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[], $10::text[],
                $11::text[])
        with ordinality n (message, user_id, conversation, variables, expires_at, state, until, change, reason, written, place)
    order by message collate pg_catalog."C", user_id collate pg_catalog."C", place
), judged as (
    select d.*, d.state = 'due' and d.reason <> 'always' and exists (
        select from roost.living_user l where l.user_id = d.user_id and l.node <> $1) as is_elsewhere
    from draft d
    order by d.message collate pg_catalog."C", d.user_id collate pg_catalog."C"
)
insert into roost.alert as a
    (message, user_id, conversation, variables, expires_at, state, due_at, node, created_at, place, said, reason, written)
select message, user_id, conversation, variables, to_timestamp(expires_at / 1000.0),
       case when is_elsewhere then 'elsewhere' else state end,
       case
           when state = 'held' then to_timestamp(until / 1000.0)
           when is_elsewhere then statement_timestamp() + interval '30 seconds'
           else statement_timestamp() + place * interval '1 microsecond'
       end,
       $1, statement_timestamp(), change, case state when 'due' then array[$1] else '{}' end, reason, written
from judged
on conflict (message, user_id) do update
set state = case
        when excluded.state = 'dropped' then 'dropped'
        when excluded.state = 'held' or a.state = 'held' then 'held'
        when exists (
            select from roost.living_user l
            where l.user_id = a.user_id and l.node <> excluded.node and l.node <> all (a.said)) then 'elsewhere'
        else 'due' end,
    due_at = case
        when excluded.state = 'held' then greatest(excluded.due_at, case a.state when 'held' then a.due_at end)
        when a.state <> 'elsewhere' then a.due_at
        when exists (
            select from roost.living_user l
            where l.user_id = a.user_id and l.node <> excluded.node and l.node <> all (a.said)) then a.due_at
        else excluded.due_at end,
    node = case
        when excluded.state = 'dropped' then excluded.node
        when excluded.state = 'held' and (a.state <> 'held' or excluded.due_at > a.due_at) then excluded.node
        else a.node end,
    said = case when excluded.said <> '{}' and excluded.node <> all (a.said) then a.said || excluded.node else a.said end,
    reason = case when excluded.state = 'dropped' or a.state = 'elsewhere' then excluded.reason else a.reason end
where a.state in ('due', 'held', 'elsewhere') and a.node <> excluded.node and a.reason is distinct from 'always'
    and (excluded.said = '{}' or excluded.node <> all (a.said))
returning message, user_id, state = 'elsewhere' or state = 'held' and node <> $1, xmax = 0

-- name: DecideAlerts
-- What this hub ($1) knows by now of alerts that wait: $2 messages, $3 users, $4 what is to become of them (due: it has nothing
-- against them; held: until $5, in milliseconds since 1970; dropped: the user has the message), $6 why. Returns those that were
-- dropped.
--
-- Invariant: as for EnqueueAlerts; what another hub holds is not due before that one says so.
-- Locks: their rows, by (message, user_id) bytewise.
with verdict as (
    select * from unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[]) n (message, user_id, state, until, reason)
), waiting as materialized (
    select a.message, a.user_id, v.state, v.until, v.reason, exists (
        select from roost.living_user l
        where l.user_id = a.user_id and l.node <> $1 and l.node <> all (a.said)) as is_elsewhere
    from roost.alert a join verdict v using (message, user_id)
    where a.state in ('due', 'held', 'elsewhere') and a.reason is distinct from 'always'
    order by a.message collate pg_catalog."C", a.user_id collate pg_catalog."C"
    for update of a
), decided as (
    update roost.alert a
    set state = case
            when w.state <> 'due' then w.state
            when a.state = 'held' and a.node <> $1 then 'held'
            when w.is_elsewhere then 'elsewhere'
            else 'due' end,
        due_at = case
            when w.state = 'held' then to_timestamp(w.until / 1000.0)
            when w.state = 'dropped' or a.state = 'due' or a.state = 'held' and a.node <> $1 then a.due_at
            when w.is_elsewhere then greatest(statement_timestamp(), a.created_at + interval '30 seconds')
            else statement_timestamp() end,
        node = case when w.state = 'due' then a.node else $1 end,
        said = case when w.state = 'due' and $1 <> all (a.said) then a.said || $1 else a.said end,
        reason = w.reason
    from waiting w
    where a.message = w.message and a.user_id = w.user_id
    returning a.state
)
select count(*) from decided where state = 'dropped'

-- name: SparePhones
-- Notes of phones that an alert is not sent to, as they have the message: $2 messages, $3 users, $4 the sessions that the phones were
-- registered with ('' for those without one), $5 why. $1 is this hub.
--
-- Invariant: a phone that has a row of roost.alert_device is sent nothing more (TakeAlerts).
-- Locks: new rows of roost.alert_device by their key.
insert into roost.alert_device (message, token, environment, bundle, user_id, node, registered_at, outcome)
select s.message, d.token, d.environment, d.bundle, d.user_id, $1, d.registered_at, s.reason
from unnest($2::text[], $3::text[], $4::text[], $5::text[]) s (message, user_id, session, reason)
join roost.push_device d on d.user_id = s.user_id and d.kind = 'alert' and coalesce(d.session, '') = s.session
order by s.message collate pg_catalog."C", d.token collate pg_catalog."C", d.environment, d.bundle
on conflict do nothing

-- name: SessionsOfPhones
-- The sessions that the phones of users ($1) were registered with, null for those without one.
-- Locks: none.
select distinct user_id, session from roost.push_device where user_id = any ($1::text[]) and kind = 'alert'

-- name: WaitingAlerts
-- Alerts of which some hub does not know yet whether the user has the message: their messages, users, places and whether this hub ($1)
-- holds them, and until when (milliseconds since 1970); at most $2, the oldest first.
-- Locks: none.
select message, user_id, place, state = 'held' and node = $1, ceil(extract(epoch from due_at) * 1000)::bigint
from roost.alert
where state in ('held', 'elsewhere')
order by due_at limit $2::int

-- name: TakeAlerts
-- Takes alerts that are due, at most $2, for this hub ($1) to send; where $3 is not null, of each user the oldest, and
-- none of these users; where $4 is not null, no users with a device of these environments, to which nothing can be sent now. Each alert is a row, the oldest first, and behind
-- them each phone is one: joined in SQL, they are joined by nested loops, as nobody knows how many they will be.
--
-- Invariants
--   * It is its own transaction, so whoever reads the answer has them, and nobody else ever will, unless they
--     are given back (GiveBackAlerts).
--   * Of a user, an alert waits for those of earlier messages (place), whatever they wait for.
--   * What a hub holds is that hub's to decide on as long as it lives (DecideAlerts).
--   * No phone gets a message twice, even if another user had it the first time.
-- Locks: rows of roost.alert that nobody has locked; then new rows of roost.alert_device by their key.
with due as materialized (
    select a.message, a.user_id, a.state, a.due_at, a.expires_at
    from roost.alert a
    where a.state in ('due', 'held', 'elsewhere') and a.due_at <= statement_timestamp()
        and (a.state <> 'held' or a.node <> $1 and not exists (
            select from roost.push_hub h
            where h.node = a.node and h.at > statement_timestamp() - interval '30 seconds'))
        and ($3::text[] is null or a.user_id <> all ($3))
        and ($4::text[] is null or not exists (
            select from roost.push_device d
            where d.user_id = a.user_id and d.kind = 'alert' and d.environment = any ($4)))
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
    set node = $1, taken_at = clock_timestamp(),
        state = case when d.expires_at <= clock_timestamp() then 'expired' else 'taken' end
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
       null as token, null as environment, null as bundle, null::bigint as registered_at, due_at, place, null as keys
from taken
union all
select c.message, c.user_id, null, null, null, null, c.token, c.environment, c.bundle,
       floor(extract(epoch from c.registered_at) * 1000)::bigint, null, null, d.keys
from claimed c left join roost.push_device d
    on c.environment = 'web' and (d.token, d.bundle, d.kind) = (c.token, c.bundle, 'alert')
order by due_at nulls last, place, registered_at desc

-- name: SettleAlerts
-- Notes how the sending of alerts to phones ended: $1 messages, $2 tokens, $3 environments, $4 bundles, $5 outcomes.
-- Locks: their rows, which nobody else writes.
update roost.alert_device d set outcome = s.outcome
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) s (message, token, environment, bundle, outcome)
where d.message = s.message and d.token = s.token and d.environment = s.environment and d.bundle = s.bundle

-- name: GiveBackAlerts
-- Puts alerts back into the queue that this hub ($1) had taken and that never left: $2 messages and $3 tokens, $4
-- environments, $5 bundles of the phones.
--
-- Invariant: a phone that an alert may have left for is not in the list, and keeps its row in roost.alert_device, so it
-- is not sent the message again.
-- Locks: rows of roost.alert by (message, user_id) bytewise, then those of roost.alert_device.
with kept as materialized (
    select d.message, d.token, d.environment, d.bundle, d.user_id
    from unnest($2::text[], $3::text[], $4::text[], $5::text[]) s (message, token, environment, bundle)
    join roost.alert_device d using (message, token, environment, bundle)
    where d.node = $1 and d.outcome is null
), locked as materialized (
    select a.message, a.user_id from roost.alert a
    where a.state = 'taken' and a.node = $1
        and (a.message, a.user_id) in (select k.message, k.user_id from kept k)
    order by a.message collate pg_catalog."C", a.user_id collate pg_catalog."C"
    for update
), freed as (
    delete from roost.alert_device d using kept k
    where (d.message, d.token, d.environment, d.bundle) = (k.message, k.token, k.environment, k.bundle)
)
update roost.alert a set state = 'due', taken_at = null from locked l
where a.message = l.message and a.user_id = l.user_id

-- name: UnsettledAlerts
-- Alerts that this hub ($1) has taken and whose outcome is not known: their messages and the phones' tokens, environments and bundles.
-- Locks: none.
select message, token, environment, bundle from roost.alert_device where outcome is null and node = $1

-- name: HandOverAlerts
-- This hub ($1) ends: what it holds waits for other hubs, to which its users may come, for $2 milliseconds at least. Nobody waits until it
-- counts as dead.
-- Locks: their rows, by (message, user_id) bytewise.
with held as (
    select message, user_id from roost.alert
    where state = 'held' and node = $1
    order by message collate pg_catalog."C", user_id collate pg_catalog."C"
    for update
)
update roost.alert a
set state = 'elsewhere',
    due_at = greatest(a.due_at, statement_timestamp() + $2::bigint * interval '1 millisecond')
from held h
where a.message = h.message and a.user_id = h.user_id

-- name: NextAlert
-- When the next alert falls due that nobody holds, in milliseconds since 1970, rounded up.
-- Locks: none.
select ceil(extract(epoch from due_at) * 1000)::bigint from roost.alert
where state in ('due', 'elsewhere')
order by due_at limit 1

-- name: HoldAlerts
-- The alerts that this hub ($1) held when its last process ended wait at least until a moment ($2, milliseconds since
-- 1970): its users have time to come back.
-- Locks: their rows, by (message, user_id) bytewise.
with held as (
    select message, user_id from roost.alert
    where state = 'held' and node = $1 and due_at < to_timestamp($2::bigint / 1000.0)
    order by message collate pg_catalog."C", user_id collate pg_catalog."C"
    for update
)
update roost.alert a set due_at = to_timestamp($2::bigint / 1000.0) from held h
where a.message = h.message and a.user_id = h.user_id

-- name: CloseUnanswered
-- Closes what this hub ($1) had taken to send when its last process ended, and returns how many that were: nobody knows
-- whether they left, and they are not sent again.
-- Locks: the hub's own rows.
with closed as (
    update roost.alert_device set outcome = 'unknown' where outcome is null and node = $1 returning 1
)
select count(*) from closed

-- name: PruneAlerts
-- Forgets alerts that are older than $1 seconds, at most $2 of them, and what phones they were sent to.
--
-- Invariant: $1 is longer than any hub reads back (retention), so a message that is forgotten does not come again.
-- Locks: their rows; what somebody else has locked is left for the next time.
with old as (
    select message, user_id from roost.alert
    where created_at < statement_timestamp() - $1::bigint * interval '1 second'
    order by created_at limit $2::int
    for update skip locked
), gone as (
    delete from roost.alert a using old o where a.message = o.message and a.user_id = o.user_id returning a.message
), devices as (
    delete from roost.alert_device d using (select distinct message from gone) g where d.message = g.message
)
select count(*) from gone

-- name: WithdrawAlerts
-- Drops alerts of what users have read, whichever hub holds them: $2 users, $3 conversations, $4 the positions up to which they have
-- read, $5 the places in the outbox of the changes that said so. Returns how many those are.
--
-- Invariants
--   * A message that was committed after the position moved is not read, and one that lies behind it is not.
--   * Positions are compared as numbers, as times, or bytewise, by what both look like. A message of which it is not known where it
--     lies counts as read.
--   * What is taken (TakeAlerts) is sent.
-- Locks: their rows, by (message, user_id) bytewise.
with waiting as materialized (
    select a.message, a.user_id
    from unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) r (user_id, conversation, position, place)
    join roost.alert a on a.user_id = r.user_id and a.conversation = r.conversation
    where a.state in ('due', 'held', 'elsewhere') and a.place < r.place and case
        when a.written is null then true
        when a.written ~ '^-?[0-9]+([.][0-9]+)?$' and r.position ~ '^-?[0-9]+([.][0-9]+)?$'
            then a.written::numeric <= r.position::numeric
        when a.written ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]' and r.position ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]'
            then a.written::timestamptz <= r.position::timestamptz
        else a.written collate pg_catalog."C" <= r.position collate pg_catalog."C" end
    order by a.message collate pg_catalog."C", a.user_id collate pg_catalog."C"
    for update of a
), withdrawn as (
    update roost.alert a set state = 'dropped', reason = 'read', node = $1 from waiting w
    where a.message = w.message and a.user_id = w.user_id
    returning 1
)
select count(*) from withdrawn
