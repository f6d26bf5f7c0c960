-- The outcomes of alerts, for people to read.
-- Locks: none.

-- name: TraceSession
-- The settings of the session for the operator's page, besides Sessions.sql. Nothing here has an index of its own,
-- which would cost on every alert: with a million alerts a query takes less than a second, and never more than these 3
-- s.
set application_name = 'roost alerts';
set default_transaction_read_only = on;
set statement_timeout = '3s';
set jit = off;
set max_parallel_workers_per_gather = 0

-- name: AlertsOfMessage
-- The alerts of a message ($1: as roost.alert has it, or its primary key alone), at most $2, newest first: the message,
-- the user, the state, the reason, when it was queued and when it was taken or is due for a decision (milliseconds
-- since 1970), and its phones, each as the first digits of its token and Apple's answer.
select a.message, a.user_id, a.state, a.reason, floor(extract(epoch from a.created_at) * 1000)::bigint,
       floor(extract(epoch from coalesce(
           a.taken_at, case when a.state in ('due', 'held', 'elsewhere') then a.due_at end)) * 1000)::bigint, (
           select string_agg(left(d.token, 8) || '... ' || coalesce(d.outcome, 'on its way'), ', ' order by d.taken_at, d.token)
           from roost.alert_device d where d.message = a.message and d.user_id = a.user_id)
from roost.alert a
where a.message = $1 or right(a.message, length($1) + 1) = ' ' || $1
order by a.created_at desc, a.message, a.user_id limit $2::int

-- name: AlertsOfUser
-- The alerts of a user ($1), at most $2, with AlertsOfMessage's columns.
select a.message, a.user_id, a.state, a.reason, floor(extract(epoch from a.created_at) * 1000)::bigint,
       floor(extract(epoch from coalesce(
           a.taken_at, case when a.state in ('due', 'held', 'elsewhere') then a.due_at end)) * 1000)::bigint, (
           select string_agg(left(d.token, 8) || '... ' || coalesce(d.outcome, 'on its way'), ', ' order by d.taken_at, d.token)
           from roost.alert_device d where d.message = a.message and d.user_id = a.user_id)
from roost.alert a
where a.user_id = $1
order by a.created_at desc, a.message limit $2::int
