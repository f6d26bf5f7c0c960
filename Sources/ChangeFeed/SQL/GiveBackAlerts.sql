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
