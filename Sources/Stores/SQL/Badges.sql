-- The numbers on the icons of users who have read something.
-- Locks: rows of roost.badge.

-- name: AskBadges
-- What the operator's statement (alerts.badge) says of some users ($1) who have phones.
-- Locks: none of roost's.
select b.user_id::text, b.badge::bigint
from (
{statement}
) b

-- name: UsersWithPhones
-- Those of some users ($1) who have a phone that wants alerts.
-- Locks: none.
select distinct user_id from roost.push_device where user_id = any ($1::text[]) and kind = 'alert'

-- name: ClaimBadges
-- Of users ($1) and the numbers on their icons ($2), those that this hub is to tell their phones: each phone is a row, with the session
-- that registered it. Behind them those for whom it is too soon, with when it is time (milliseconds since 1970), as there are $3
-- milliseconds between two pushes to a user.
--
-- Invariant: of several hubs that ask at the same time for the same number, one is told to push it.
-- Locks: their rows, by user_id bytewise.
with wanted as materialized (
    select distinct on (user_id collate pg_catalog."C") user_id, badge
    from unnest($1::text[], $2::bigint[]) w (user_id, badge)
    order by user_id collate pg_catalog."C"
), claimed as (
    insert into roost.badge as b (user_id, badge, pushed_at)
    select user_id, badge, clock_timestamp() from wanted
    on conflict (user_id) do update set badge = excluded.badge, pushed_at = excluded.pushed_at
    where b.badge is distinct from excluded.badge
        and b.pushed_at <= excluded.pushed_at - $3::bigint * interval '1 millisecond'
    returning user_id, badge
)
select c.user_id, c.badge, null::bigint, d.token, d.environment, d.bundle, d.session,
       floor(extract(epoch from d.registered_at) * 1000)::bigint
from claimed c join roost.push_device d on d.user_id = c.user_id and d.kind = 'alert'
union all
select w.user_id, w.badge, ceil(extract(epoch from b.pushed_at) * 1000)::bigint + $3::bigint, null, null, null, null, null
from wanted w join roost.badge b using (user_id)
where b.badge is distinct from w.badge and b.pushed_at > clock_timestamp() - $3::bigint * interval '1 millisecond'
    and not exists (select from claimed c where c.user_id = w.user_id)

-- name: ForgetBadges
-- The phones of some users ($1) were told another number, by an alert.
-- Locks: their rows, by user_id bytewise.
with told as materialized (
    select user_id from roost.badge where user_id = any ($1::text[]) and badge is not null
    order by user_id collate pg_catalog."C" for update
)
update roost.badge b set badge = null from told t where b.user_id = t.user_id
