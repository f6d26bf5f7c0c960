-- The sessions that the hub serves with row changes (SchemaSessions.sql).

-- name: SessionOfSessions
-- The settings of the session that records which clients may come back, besides Sessions.sql.
-- Joins wait for it, so it must not wait long for other sessions.
set application_name = 'roost sessions';
set lock_timeout = '1s';
set statement_timeout = '5s';
set idle_in_transaction_session_timeout = '5s';
set jit = off;
set max_parallel_workers_per_gather = 0;

-- name: StoredSessions
-- The sessions that may come back to this hub ($1); no row at all if the list is not complete, and a row of nulls if it is
-- known to be empty. With their positions (SchemaSessions.sql), and for how many milliseconds the only session of a key
-- has been lost. Sessions whose clients continued elsewhere are left out (SchemaSessions.sql).
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
-- Records the sessions that may come back to this hub ($1): keys without any such session ($2), and for the others the
-- number of sessions, their position, and for how many milliseconds the only one has been lost ($3 to $7).
-- Invariant: a key occurs once per statement, either as gone or as present.
-- Locks: rows of this hub's own, which no other session writes.
with gone as (
    delete from roost.session where node = $1 and key = any ($2::uuid[])
)
insert into roost.session (node, key, sessions, follows, place, lost_at)
select $1, key, sessions, follows, place, clock_timestamp() - make_interval(secs => lost / 1000.0)
from unnest($3::uuid[], $4::integer[], $5::boolean[], $6::pg_snapshot[], $7::bigint[]) r (key, sessions, follows, place, lost)
on conflict (node, key) do update
set sessions = excluded.sessions, follows = excluded.follows, place = excluded.place, lost_at = excluded.lost_at

-- name: SessionsElsewhere
-- For keys ($2) of this hub ($1), the other hubs that may have served them, and where those hubs' clients continue: all of
-- them, and those of the key. With the time of this look-up, if it found a single session that may be claimed
-- (SchemaSessions.sql).
--
-- Invariants
--   * A hub whose list counts is in the result for the keys that it lists; if a hub's list does not count, its sessions are
--     unknown, so it is in the result for every key. Either only if the hub was present within $3 seconds.
--   * Positions that a hub stored on another server mean nothing here, nor do positions ahead of this server.
--   * A session whose client continued elsewhere is not in the result.
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
-- Claims sessions that other hubs ($1) keep under keys ($2): their clients continued here, where the sessions were looked
-- up at $3, and lack nothing that the sessions stood for.
-- Locks: rows of session_claim, which their hub takes.
insert into roost.session_claim (node, key, sought_at)
select * from unnest($1::text[], $2::uuid[], $3::timestamptz[]) order by 1, 2
on conflict (node, key) do update set sought_at = greatest(roost.session_claim.sought_at, excluded.sought_at)

-- name: TakeClaims
-- Takes the claims on this hub's sessions ($1), with how many milliseconds ago the sessions were looked up. Claims that
-- other hubs have not taken for an hour are deleted: what such a hub kept is no longer needed.
-- Locks: the rows it deletes.
with old as (
    delete from roost.session_claim where node <> $1 and sought_at < clock_timestamp() - interval '1 hour'
)
delete from roost.session_claim where node = $1
returning key, (extract(epoch from clock_timestamp() - sought_at) * 1000)::bigint

-- name: SessionsAreProven
-- Records the snapshot that all sessions of this hub ($1) with `follows` have ($2). Only after the rows of sessions that
-- may not have it. Returns whether there are other hubs.
-- Locks: the hub's own row.
update roost.session_list set proven = $2::pg_snapshot, seen_at = clock_timestamp() where node = $1
returning exists (
    select from roost.session_list o where o.node <> $1 and o.seen_at > clock_timestamp() - interval '10 minutes')

-- name: SessionsAreSeen
-- Records that this hub ($1) still writes its list. Returns whether there are other hubs.
-- Locks: the hub's own row.
update roost.session_list set seen_at = clock_timestamp() where node = $1
returning exists (
    select from roost.session_list o where o.node <> $1 and o.seen_at > clock_timestamp() - interval '10 minutes')

-- name: ForgetSessions
-- Deletes the sessions of this hub ($1), in the transaction that writes all of them again.
-- Locks: rows of this hub's own, which no other session writes.
delete from roost.session where node = $1

-- name: ListTurn
-- The turn that a claim of completeness for this hub's list ($1) must name to count; no row if the hub has no cursor yet.
-- Locks: none.
select list_turn from roost.cursor where node = $1

-- name: SessionsAreListed
-- Declares roost.session a complete list of the sessions that may come back to this hub ($1), for as long as the hub is in
-- this turn ($2), which was read before the list was found complete; sessions with `follows` have what $3 sees.
-- Locks: the hub's own row.
insert into roost.session_list (node, turn, proven) values ($1, $2::bigint, $3::pg_snapshot)
on conflict (node) do update set turn = excluded.turn, proven = excluded.proven, seen_at = clock_timestamp()

-- name: SessionsAreUnknown
-- Declares that roost.session may lack sessions that may come back to this hub ($1).
-- Locks: the hub's own row.
delete from roost.session_list where node = $1

-- name: WithdrawList
-- Invalidates every claim that roost.session lists all sessions that may come back to this hub ($1), until one is made for
-- the new turn (SchemaRecovery.sql). No row if the hub has no cursor.
-- Locks: the hub's own row.
update roost.cursor set list_turn = list_turn + 1 where node = $1 returning list_turn
