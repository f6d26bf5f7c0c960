-- Drops the alerts that wait for users who are live at this hub ($1; $2, the users), whoever put them there.
-- Locks: their rows, by (message, user_id) bytewise.
with waiting as (
    select message, user_id from roost.alert
    where user_id = any ($2::text[]) and state in ('due', 'held', 'elsewhere')
    order by message collate pg_catalog."C", user_id collate pg_catalog."C"
    for update
)
update roost.alert a set state = 'dropped', node = $1 from waiting w
where a.message = w.message and a.user_id = w.user_id
