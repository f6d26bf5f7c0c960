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
