-- Forgets a token ($1, $2 environment, $3 bundle), of phones and of activities: of those registered before a moment
-- ($4, milliseconds since 1970) or, where it is null, in any case.
--
-- Invariant: a token that was registered again after Apple called it dead lives (apns.md, 410).
-- Locks: the token's rows, activities by id.
with devices as (
    delete from roost.push_device
    where token = $1 and environment = $2 and bundle = $3
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
select (select count(*) from devices) + (select count(*) from activities)
