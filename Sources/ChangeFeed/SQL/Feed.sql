-- How a hub is known to the database, where it goes on, and what it does besides reading.

-- name: SessionOfFeed
-- What the feed's sessions run besides Sessions.sql.
-- Nothing the hub writes needs to survive a crash of the server: the cursor is then a little older, and rows are read
-- again.
-- Plans: a window is cut from the outbox by its one index; without statistics the planner may prefer to read it all. One
-- plan serves all windows of a kind: to make it costs ten times what it costs to run.
set synchronous_commit = off;
set enable_seqscan = off;
set plan_cache_mode = force_generic_plan;
set max_parallel_workers_per_gather = 0;
set jit = off;
set default_transaction_isolation = 'read committed';
set default_transaction_read_only = off;

-- name: Position
-- Where the feed starts: its doorbell, its stored cursor, and what the server is; $1 is the hub's name, $2 epochs that
-- this process has written.
--
-- A stored cursor means something only in the history it was taken in. That this is the same is told by the epochs
-- (Migration010Epochs.sql): is_foreign where any was written by another transaction than it says, into another table or
-- on another server, as by a restored dump; then the third column is false. Where somebody emptied the table, the system
-- identifier has to do.
-- Last come the transactions that restored epochs, those of $2 that there are, and whether the server was given a point
-- to recover to.
-- The timeline is that of the WAL that is being written: pg_control_checkpoint() tells a promoted server's new one only
-- after its next checkpoint. It cannot be asked of a standby.
-- Locks: none.
select n.doorbell, c.snapshot,
       case when e.is_foreign is null then c.system_identifier = s.system_identifier else not e.is_foreign end
           and pg_snapshot_xmax(c.snapshot) <= pg_snapshot_xmax(pg_current_snapshot()),
       s.system_identifier, pg_current_snapshot(), current_setting('track_commit_timestamp'),
       ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int,
       e.is_foreign, e.restored_by,
       (select string_agg(id::text, ',') from roost.epoch where id = any ($2::bigint[])),
       exists (
           select from pg_settings
           where name in ('recovery_target', 'recovery_target_lsn', 'recovery_target_name', 'recovery_target_time',
                   'recovery_target_xid')
               and setting <> '')
from pg_control_system() s
cross join roost.node n
cross join (
    select bool_or(w.is_foreign) as is_foreign,
           string_agg(distinct w.writer, ',') filter (where w.is_foreign) as restored_by
    from (
        select e.xmin::text as writer,
               e.xmin <> e.born::xid and coalesce(
                   e.system_identifier <> c.system_identifier or e.relation <> 'roost.epoch'::regclass, false
               ) as is_foreign
        from roost.epoch e cross join pg_control_system() c
    ) w
) e
left join roost.cursor c on c.node = n.name
where n.name = $1

-- name: Register
-- Makes sure that this hub has a row, and with it a doorbell. The name ($1) identifies the hub across restarts.
-- The trigger roost.on_node makes the writers try the new doorbell: the row is inserted once in a hub's life, never
-- updated.
-- Locks: the new row; advisory lock (1919905650, 0) while writers' function is replaced.
insert into roost.node (name) values ($1) on conflict (name) do nothing

-- name: StoreCursor
-- Stores how far the hub has handed changes on ($3), and what its clients certainly have ($4), on which timeline ($5).
-- A stored cursor never runs ahead of the server's own history: every transaction its snapshot calls finished has its
-- record earlier in the WAL than this row, so after a crash or a failover either both survive or the cursor is older.
-- Returns where this row lies in the WAL and how far the WAL is safe, which tells when an earlier cursor became safe.
-- Locks: the hub's own row.
insert into roost.cursor (node, system_identifier, snapshot, recovery, timeline)
values ($1, $2::bigint, $3::pg_snapshot, $4::pg_snapshot, $5::integer)
on conflict (node) do update
set system_identifier = excluded.system_identifier, snapshot = excluded.snapshot, recovery = excluded.recovery,
    timeline = excluded.timeline, stored_at = clock_timestamp()
returning (pg_current_wal_insert_lsn() - '0/0')::bigint, (pg_current_wal_flush_lsn() - '0/0')::bigint

-- name: ClaimNode
-- Takes this session's share of the hub's name: every hub that is connected under the name has one, for as long as its
-- session lasts. $1 is the doorbell. It is tried only: no role that
-- takes the lock for itself can keep a hub from its work.
-- Locks: advisory lock (1919905649, doorbell), shared, tried.
select pg_try_advisory_lock_shared(1919905649, $1::int4)

-- name: HubSessions
-- The sessions that have a share of the name with the doorbell $1 (ClaimNode in Feed.sql), but for this one: one of each hub
-- that is connected under it. When they last did something is null where this role may not know.
-- Locks: none.
select l.pid, case when a.client_addr is not null then 'at ' || host(a.client_addr)
           when a.client_port = -1 then 'on Postgres'' own machine' else 'elsewhere' end,
       to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), a.state_change
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.classid = 1919905649 and l.objid = $1::int4::oid and l.objsubid = 2 and l.granted
  and l.database = (select oid from pg_database where datname = current_database()) and l.pid <> pg_backend_pid()
order by a.backend_start, l.pid

-- name: DoorbellGranted
-- Whether the session with this process id ($1) has the doorbell's lock, whatever it says itself.
-- Locks: none.
select exists (
    select from pg_locks
    where locktype = 'advisory' and classid = 1919905651 and pid = $1::int4 and granted and mode = 'ExclusiveLock'
)

-- name: Prune
-- Deletes what is older than the retention ($1, seconds) among the next 1,000 changes behind ($2, $3), the primary key.
--
-- Invariants
--   * Changes are taken by the primary key, oldest transaction first, and then asked for their age: a scan by age would
--     read the whole outbox. A batch starts behind the last one: what lies before is dead index entries until vacuum
--     comes, and to walk over them costs more than the deletes.
--   * What is deleted is noted in roost.meta by a trigger, in the same transaction (Migration010Epochs.sql).
--   * A change is as old as its statement, not as its commit. What a transaction that lasted longer than the retention
--     has brought just now stays until it was there for 10 minutes, so that clients that come back find it: the newest
--     epoch of before then tells what was finished.
--   * A row of the outbox is never updated, so within one statement its ctid is its name.
-- Returns how many changes were looked at, how many deleted, the key of the last one looked at, and how full the queue
-- of notifications is. Nothing is looked at where it is somebody else's turn.
-- Locks: the row of roost.meta, skipped where somebody has it (another hub that prunes, a migration), so that nobody
-- waits; then the rows it deletes, which only pruners lock.
with turn as materialized (
    select pruned_xid from roost.meta for update skip locked
), oldest as materialized (
    select ctid, xid, id, at from roost.change
    where exists (select from turn) and (xid, id) > ($2::xid8, $3::bigint)
    order by xid, id limit 1000
), settled as materialized (
    select snapshot from roost.epoch
    where made_at < clock_timestamp() - interval '10 minutes' order by made_at desc limit 1
), gone as (
    delete from roost.change
    where ctid = any (array(
        select ctid from oldest
        where at < clock_timestamp() - make_interval(secs => $1::float8)
            and coalesce(pg_visible_in_snapshot(xid, (select snapshot from settled)), true)))
    returning xid
), last as (
    select xid, id from oldest order by xid desc, id desc limit 1
)
select (select count(*) from oldest), (select count(*) from gone), (select xid from last), (select id from last),
       pg_notification_queue_usage()

-- name: Outbox
-- How much the outbox holds: about how many rows, bytes with what is stored apart, and the age of the oldest in seconds. Read
-- now and then, while somebody reads the metrics.
--
-- Few rows are counted, many are what vacuum or analyze counted last: after a quiet hour that may be none while some are there.
-- A table that is large on disk is not counted through, as most of it may be rows that are gone.
--
-- The oldest is the first of the primary key: a transaction that began earlier may have written later, by less than it
-- lasted. Locks: none.
select case when reltuples < 10000 and pg_table_size(oid) < 64 * 1024 * 1024
            then (select count(*) from (select from roost.change limit 10001) few)
            else greatest(reltuples, 0)::bigint end,
       pg_table_size(oid),
       coalesce((select extract(epoch from clock_timestamp() - at) from roost.change order by xid, id limit 1), 0)
from pg_class
where oid = 'roost.change'::regclass

-- name: SessionOfConditions
-- What the session that decides clients' filters runs besides Sessions.sql.
--
-- Invariants
--   * Whatever a filter makes Postgres do, it writes nothing and ends in time: each statement brings its own
--     statement_timeout; this one is for whatever forgets to.
--   * A wait for a lock (a table that is being altered) ends earlier than the statement, so that it is not taken for a
--     filter that computes too long. That, too, comes with each statement.
set application_name = 'roost filters';
set default_transaction_read_only = on;
set statement_timeout = '2s';
set lock_timeout = '1s';
set idle_in_transaction_session_timeout = '5s';
set max_parallel_workers_per_gather = 0;
set jit = off
