-- What became of alerts, for people.
-- Locks: none.

-- name: TraceSession
-- What the session of the operator's page runs besides Sessions.sql. Nothing here has an index of its own, which each alert
-- would pay for: with a million alerts a question costs less than a second, and never more than these.
set application_name = 'roost alerts';
set default_transaction_read_only = on;
set statement_timeout = '3s';
set jit = off;
set max_parallel_workers_per_gather = 0

-- name: AlertsOfMessage
-- The alerts of a message ($1: as roost.alert has it, or its primary key alone), at most $2, the newest first: the message, the user,
-- the state, the reason, when it was put into the queue and when it was taken or is to be decided on (milliseconds since 1970), and
-- its phones, each as the beginning of its token and what Apple said.
select a.message, a.user_id, a.state, a.reason, floor(extract(epoch from a.created_at) * 1000)::bigint,
       floor(extract(epoch from coalesce(
           a.taken_at, case when a.state in ('due', 'held', 'elsewhere') then a.due_at end)) * 1000)::bigint, (
           select string_agg(left(d.token, 8) || '... ' || coalesce(d.outcome, 'on its way'), ', ' order by d.taken_at, d.token)
           from roost.alert_device d where d.message = a.message and d.user_id = a.user_id)
from roost.alert a
where a.message = $1 or right(a.message, length($1) + 1) = ' ' || $1
order by a.created_at desc, a.message, a.user_id limit $2::int

-- name: AlertsOfUser
-- The alerts of a user ($1), as AlertsOfMessage has them.
select a.message, a.user_id, a.state, a.reason, floor(extract(epoch from a.created_at) * 1000)::bigint,
       floor(extract(epoch from coalesce(
           a.taken_at, case when a.state in ('due', 'held', 'elsewhere') then a.due_at end)) * 1000)::bigint, (
           select string_agg(left(d.token, 8) || '... ' || coalesce(d.outcome, 'on its way'), ', ' order by d.taken_at, d.token)
           from roost.alert_device d where d.message = a.message and d.user_id = a.user_id)
from roost.alert a
where a.user_id = $1
order by a.created_at desc, a.message limit $2::int
