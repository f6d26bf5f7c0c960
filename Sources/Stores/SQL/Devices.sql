-- Phones that users registered, and tokens that are gone.
-- Lock order: rows of roost.push_device (one user's and those of one token), then activities by id.

-- name: RegisterDevice
-- Notes a device's token ($1 token, $2 environment, $3 bundle, $4 kind, $5 type of attributes, $12 keys of a browser) as that of a user
-- ($6, of the session $7, with the role $8 and the claims $9), and forgets the token that it replaces ($10, or null).
--
-- Invariants
--   * A token that another user registered before moves to this one: the phone is in other hands.
--   * An environment that Apple has named stays, whatever the registration says. The row says which one it is.
--   * A session is one device, so it has one token of a kind and a service; it rotates.
--   * A user has no more than $11 tokens of a kind: the oldest are forgotten.
-- Locks: the token's row and rows of this user.
with fresh as (
    insert into roost.push_device as d
        (token, environment, bundle, kind, attributes_type, user_id, session, role, claims, registered_at, keys)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb - '{exp,iat}'::text[], clock_timestamp(), $12)
    on conflict (token, bundle, kind) do update
    set environment = case when d.environment_found then d.environment else excluded.environment end,
        attributes_type = excluded.attributes_type, user_id = excluded.user_id, session = excluded.session,
        role = excluded.role, claims = excluded.claims, registered_at = excluded.registered_at,
        keys = excluded.keys, from_app = false
    returning registered_at, environment
), others as (
    select token, bundle, kind, session, attributes_type,
           case when environment in ('fcm', 'web') then environment else 'apns' end
               = case when $2 in ('fcm', 'web') then $2 else 'apns' end as is_of_service,
           row_number() over (order by registered_at desc) as place
    from roost.push_device
    where user_id = $6 and kind = $4 and (token, bundle) <> ($1, $3)
), gone as (
    delete from roost.push_device d using others o
    where (d.token, d.bundle, d.kind) = (o.token, o.bundle, o.kind) and d.user_id = $6
        and (o.place >= $11::int or o.bundle = $3 and o.is_of_service and (
            o.token = $10 or o.session = $7 and o.attributes_type is not distinct from $5))
)
select floor(extract(epoch from registered_at) * 1000)::bigint, environment from fresh

-- name: UnregisterDevice
-- Forgets a token ($1) of a user ($2), whatever it was registered for.
-- Locks: the token's rows.
delete from roost.push_device where token = $1 and user_id = $2

-- name: DevicesOfUser
-- The phones of a user ($1), the newest first.
-- Locks: none.
select token, environment, bundle, attributes_type, floor(extract(epoch from registered_at) * 1000)::bigint
from roost.push_device where user_id = $1 and kind <> 'gone' order by registered_at desc

-- name: KeepEnvironment
-- Moves a token ($1, $3 bundle) from an environment ($2) to the one that Apple knows it in ($4), for phones and for activities.
-- Returns how many rows that were.
-- Locks: the token's rows, activities by id.
with devices as (
    update roost.push_device set environment = $4, environment_found = true
    where token = $1 and environment = $2 and bundle = $3
    returning 1
), open as (
    select id from roost.push_activity
    where token = $1 and environment = $2 and bundle = $3 and ended_at is null
    order by id for update
), activities as (
    update roost.push_activity a set environment = $4, environment_found = true from open o where a.id = o.id
    returning 1
)
select (select count(*) from devices) + (select count(*) from activities)

-- name: DropDestination
-- Forgets a token ($1, $2 environment, $3 bundle), of phones and of activities: of those registered before a moment
-- ($4, milliseconds since 1970) or, where it is null, in any case.
--
-- Invariants
--   * A token that was registered again after Apple called it dead lives (PushToken.isGone).
--   * One that the application keeps is remembered as dead for as long as the application has it (AppTokens.sql).
-- Locks: the token's rows, activities by id.
with devices as (
    delete from roost.push_device
    where token = $1 and environment = $2 and bundle = $3 and not from_app
        and ($4::bigint is null or registered_at < to_timestamp($4 / 1000.0))
    returning 1
), kept as (
    update roost.push_device set kind = 'gone'
    where token = $1 and environment = $2 and bundle = $3 and from_app and kind = 'alert'
        and ($4::bigint is null or registered_at < to_timestamp($4 / 1000.0))
    returning 1
), open as (
    select id from roost.push_activity
    where token = $1 and environment = $2 and bundle = $3 and ended_at is null
        and ($4::bigint is null or registered_at < to_timestamp($4 / 1000.0))
    order by id for update
), activities as (
    update roost.push_activity a set ended_at = clock_timestamp() from open o where a.id = o.id
    returning 1
)
select (select count(*) from devices) + (select count(*) from kept) + (select count(*) from activities)
