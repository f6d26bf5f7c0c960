-- Phones that the application itself keeps, by the operator's statement (alerts.tokens), and users who are notified by name.
--
-- Invariants
--   * What the statement says of a user is made rows of roost.push_device with from_app before anybody looks for that user's phones;
--     from there on they are phones like others.
--   * First comes what is new and then goes what is not there any more, so that no user is without a phone in between.
--   * A token that a user registered at the hub is that user's, whatever the application says.
--   * A token that the application has for two users stays with the first: whose phone it is nobody knows.
-- Lock order: rows of roost.push_device, those of some users at a time.

-- name: AskTokens
-- What the operator's statement says of the phones of some users: $1::text[] is the statement's, the users; of its rows $2 at most.
-- Locks: none of roost's.
select t.row ->> 'user_id', t.row ->> 'token', t.row ->> 'environment', coalesce(t.row ->> 'bundle', t.row ->> 'bundle_id'),
       t.row ->> 'kind', t.row ->> 'p256dh', t.row ->> 'auth'
from (
    select to_jsonb(a) as row
    from (
{statement}
    ) a
) t
limit $2::int

-- name: ExamineTokens
-- Whether the operator's statement fits the database, and has the columns that it has to have. $1::text[] is the statement's.
-- Locks: none of roost's.
select a.user_id::text, a.token::text
from (
{statement}
) a
limit 0

-- name: AskEverybody
-- As AskAudience in Audience.sql, but of users without a registration, too: they may have a phone that the application keeps. In the
-- last column, whether there is a registration.
-- Locks: none of roost's.
select m.change, m.user_id, m.variables - 'row', m.variables ->> 'muted', m.variables ->> 'badge', d.found is true,
       d.found is true or u.found is true
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

-- name: CompareTokens
-- How the application's phones differ from what is known: of some users ($1) it has $2 users, $3 tokens, $4 environments, $5 bundles.
-- Returns a row with whether anything is to be changed, and one for each other user who has one of the tokens in roost.push_device, from
-- the application too. An environment that Apple has confirmed (environment_found) is no difference.
-- Locks: none.
with said as (
    select * from unnest($2::text[], $3::text[], $4::text[], $5::text[]) s (user_id, token, environment, bundle)
), known as (
    select s.user_id, d.user_id as owner
    from said s left join roost.push_device d
        on (d.token, d.bundle) = (s.token, s.bundle) and d.kind in ('alert', 'gone')
            and (d.from_app and (d.environment = s.environment or d.environment_found or d.kind = 'gone')
                or not d.from_app and d.user_id = s.user_id)
)
select null::text as owner,
       exists (select from known where owner is null or owner <> user_id) or exists (
           select from roost.push_device d
           where d.user_id = any ($1::text[]) and d.from_app and not exists (
               select from said s
               where (s.user_id, s.token, s.bundle) = (d.user_id, d.token, d.bundle)))
union all
select distinct owner, true from known where owner <> user_id and owner <> all ($1::text[])

-- name: AddTokens
-- Notes the application's phones, as in CompareTokens, and $6 the keys of browsers. One that was another user's ($1 is complete) is this one's where the application
-- does not have it there any more.
-- Locks: the tokens' rows.
with said as (
    select distinct on (token, bundle) *
    from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) s (user_id, token, environment, bundle, keys)
    order by token, bundle, user_id, environment
)
insert into roost.push_device as d (token, environment, bundle, kind, user_id, role, claims, registered_at, from_app, keys)
select s.token, s.environment, s.bundle, 'alert', s.user_id, 'authenticated',
       jsonb_build_object('sub', s.user_id, 'role', 'authenticated'), clock_timestamp(), true, s.keys
from said s
where not exists (
        select from roost.push_device g
        where (g.token, g.bundle, g.kind) = (s.token, s.bundle, 'gone'))
    and not exists (
        select from roost.push_device o
        where (o.token, o.bundle, o.kind) = (s.token, s.bundle, 'alert')
            and (not o.from_app or case
                when o.user_id = s.user_id then o.environment = s.environment or o.environment_found
                else o.user_id <> all ($1::text[]) or exists (
                    select from unnest($2::text[], $3::text[], $5::text[]) t (user_id, token, bundle)
                    where (t.user_id, t.token, t.bundle) = (o.user_id, o.token, o.bundle)) end))
order by s.token collate pg_catalog."C"
on conflict (token, bundle, kind) do update
set environment = case when d.environment_found then d.environment else excluded.environment end, user_id = excluded.user_id, claims = excluded.claims, role = excluded.role, registered_at = excluded.registered_at,
    keys = excluded.keys, session = null
where d.from_app

-- name: RemoveTokens
-- Forgets phones of some users ($1) that the application does not have any more, as in CompareTokens, be they dead or not.
-- Locks: rows of these users.
delete from roost.push_device d
where d.user_id = any ($1::text[]) and d.from_app and not exists (
    select from unnest($2::text[], $3::text[], $4::text[], $5::text[]) s (user_id, token, environment, bundle)
    where (s.user_id, s.token, s.bundle) = (d.user_id, d.token, d.bundle))

-- name: UsersWithPhones
-- Which of some users ($1) have a phone for alerts.
-- Locks: none.
select distinct user_id from roost.push_device where user_id = any ($1::text[]) and kind = 'alert'

-- name: NotifiedUsers
-- What is known of users ($1) who are to get a notification ($2, the key of its alerts): how many phones each has, whether Roost knows
-- the user at all, and whether the notification was sent to it before.
-- Locks: none.
select u.id,
       (select count(*) from roost.push_device d where d.user_id = u.id and d.kind = 'alert'),
       exists (select from roost.push_user p where p.user_id = u.id)
           or exists (select from roost.online_user o where o.user_id = u.id),
       exists (select from roost.alert a where a.message = $2 and a.user_id = u.id)
from unnest($1::text[]) u (id)

-- name: Notify
-- Has users notified ($1, the notification).
-- Locks: as roost.notify.
select roost.notify($1::jsonb)
