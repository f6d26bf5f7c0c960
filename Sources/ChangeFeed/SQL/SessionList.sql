-- Whom the hub serves with row changes (Migration009Sessions.sql).

-- name: SessionOfSessions
-- What the session that writes down who may come back runs besides Sessions.sql.
-- Joins wait for it, so that it must not wait long for anybody.
set application_name = 'roost sessions';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;

-- name: StoredSessions
-- Who may come back to this hub ($1); no row at all where that is not known of everybody, and a row of nulls where it is
-- known that there is nobody. With where they stand (Migration019Places.sql), and for how many milliseconds the only one of a key has
-- been lost. Those whose clients went on elsewhere are left out (Migration024Moves.sql).
-- Locks: none.
select s.key, s.sessions, s.place, case when s.follows then l.proven end,
       (extract(epoch from clock_timestamp() - s.lost_at) * 1000)::bigint
from roost.session_list l
join roost.cursor c on c.node = l.node and c.list_turn = l.turn
left join roost.session s on s.node = l.node and not exists (
    select from roost.session_claim k
    where k.node = s.node and k.key = s.key and s.sessions = 1 and s.lost_at <= k.sought_at)
where l.node = $1

-- name: StoreSessions
-- Writes down who may come back to this hub ($1): keys that nobody may come back for ($2), and the others with how many,
-- where they stand, and for how many milliseconds the only one has been lost ($3 to $7).
-- Invariant: a key comes once in one statement, either gone or there.
-- Locks: rows of this hub's own, which nobody else writes.
with gone as (
    delete from roost.session where node = $1 and key = any ($2::uuid[])
)
insert into roost.session (node, key, sessions, follows, place, lost_at)
select $1, key, sessions, follows, place, clock_timestamp() - make_interval(secs => lost / 1000.0)
from unnest($3::uuid[], $4::integer[], $5::boolean[], $6::pg_snapshot[], $7::bigint[]) r (key, sessions, follows, place, lost)
on conflict (node, key) do update
set sessions = excluded.sessions, follows = excluded.follows, place = excluded.place, lost_at = excluded.lost_at

-- name: SessionsElsewhere
-- Of keys ($2) of this hub ($1), those that another hub may have served, and where the clients of that hub go on: all of them,
-- and those of the key. And the time of this look, where it found one session that may be claimed (Migration024Moves.sql).
--
-- Invariants
--   * A hub whose list counts is in the answer for the keys that it lists; of one whose list does not count nobody knows whom it
--     served, so that it is in the answer for every key. Either only if it was there within $3 seconds.
--   * What a hub stored on another server means nothing here. Nor does what lies ahead of this one.
--   * Of a session whose client went on elsewhere nothing is in the answer.
-- Locks: none.
select wanted.key, c.node, coalesce(c.recovery, c.snapshot),
       case when l.node is not null then s.place end, case when s.follows then l.proven end,
       case when l.node is not null and s.sessions = 1 then statement_timestamp() end
from roost.cursor c
left join roost.session_list l on l.node = c.node and l.turn = c.list_turn
cross join unnest($2::uuid[]) as wanted (key)
left join roost.session s on s.node = c.node and s.key = wanted.key and not exists (
    select from roost.session_claim k
    where k.node = s.node and k.key = s.key and s.sessions = 1 and s.lost_at <= k.sought_at)
where c.node <> $1
  and greatest(c.stored_at, l.seen_at) > clock_timestamp() - make_interval(secs => $3)
  and c.system_identifier = (select system_identifier from pg_control_system())
  and pg_snapshot_xmax(c.snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
  and (l.node is null or s.key is not null)

-- name: ClaimSessions
-- The clients of sessions that other hubs ($1) keep under keys ($2) went on here: they were looked for at $3, and lack nothing of
-- what they stood for.
-- Locks: rows of session_claim, which are taken by their hub.
insert into roost.session_claim (node, key, sought_at)
select * from unnest($1::text[], $2::uuid[], $3::timestamptz[]) order by 1, 2
on conflict (node, key) do update set sought_at = greatest(roost.session_claim.sought_at, excluded.sought_at)

-- name: TakeClaims
-- Which sessions of this hub ($1) were claimed, and how many milliseconds ago they were looked for. Those of hubs that have not taken
-- them for an hour go: nobody asks for what such a hub kept.
-- Locks: the rows that go.
with old as (
    delete from roost.session_claim where node <> $1 and sought_at < clock_timestamp() - interval '1 hour'
)
delete from roost.session_claim where node = $1
returning key, (extract(epoch from clock_timestamp() - sought_at) * 1000)::bigint

-- name: SessionsAreProven
-- What all of this hub's ($1) sessions have that follow ($2). Only behind the rows of those that may not have it. Returns whether there
-- are other hubs.
-- Locks: the hub's own row.
update roost.session_list set proven = $2::pg_snapshot, seen_at = clock_timestamp() where node = $1
returning exists (
    select from roost.session_list o where o.node <> $1 and o.seen_at > clock_timestamp() - interval '10 minutes')

-- name: SessionsAreSeen
-- This hub ($1) writes its list. Returns whether there are other hubs.
-- Locks: the hub's own row.
update roost.session_list set seen_at = clock_timestamp() where node = $1
returning exists (
    select from roost.session_list o where o.node <> $1 and o.seen_at > clock_timestamp() - interval '10 minutes')

-- name: ForgetSessions
-- Forgets who may come back to this hub ($1), in the transaction that writes all of it anew.
-- Locks: rows of this hub's own, which nobody else writes.
delete from roost.session where node = $1

-- name: ListTurn
-- The turn that a claim about this hub's list ($1) has to be for to count; no row where the hub has no cursor yet.
-- Locks: none.
select list_turn from roost.cursor where node = $1

-- name: SessionsAreListed
-- From here on roost.session lists everybody who may come back to this hub ($1), for as long as the hub is in this turn
-- ($2), which was read before the list was found complete; those who follow have what $3 sees.
-- Locks: the hub's own row.
insert into roost.session_list (node, turn, proven) values ($1, $2::bigint, $3::pg_snapshot)
on conflict (node) do update set turn = excluded.turn, proven = excluded.proven, seen_at = clock_timestamp()

-- name: SessionsAreUnknown
-- From here on roost.session may leave out somebody who may come back to this hub ($1).
-- Locks: the hub's own row.
delete from roost.session_list where node = $1

-- name: WithdrawList
-- From here on no claim counts that roost.session lists everybody who may come back to this hub ($1), until one is made for
-- the new turn (Migration012Losses.sql). No row where the hub has no cursor.
-- Locks: the hub's own row.
update roost.cursor set list_turn = list_turn + 1 where node = $1 returning list_turn
