-- A hub's registration in the database, its position, and its work besides reading.

-- name: SessionOfFeed
-- The settings of the feed's sessions besides Sessions.sql.
-- Nothing that the hub writes needs to survive a crash of the server: then the cursor is a little older, and rows are read
-- again.
-- Plans: a window is cut from the outbox by its only index; without statistics the planner may prefer to read the whole
-- table. One plan serves all windows of a kind: making it costs ten times as much as running it.
set synchronous_commit = off;
set enable_seqscan = off;
set plan_cache_mode = force_generic_plan;
set max_parallel_workers_per_gather = 0;
set jit = off;
set default_transaction_isolation = 'read committed';
set default_transaction_read_only = off;

-- name: Position
-- The feed's starting point: its doorbell, its stored cursor, and the server's identity; $1 is the hub's name, $2 epochs that
-- this process has written.
--
-- A stored cursor means something only in the history it was taken in. The epochs show whether this is the same history
-- (SchemaRecovery.sql): is_foreign is true if any was written by a transaction other than it says, into another table
-- or on another server, as by a restored dump; then the third column is false. If the table was emptied, the system
-- identifier has to do.
-- The last columns are the transactions that restored epochs, the epochs of $2 that exist, and whether the server was given
-- a recovery target.
-- The timeline is that of the WAL being written: pg_control_checkpoint() has a promoted server's new one only after its
-- next checkpoint. A standby cannot tell it.
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
-- The trigger roost.on_node makes the writers try the new doorbell: the row is inserted once in a hub's life, and never
-- updated.
-- Locks: the new row; advisory lock (1919905650, 0) while the writers' function is replaced.
insert into roost.node (name) values ($1) on conflict (name) do nothing

-- name: StoreCursor
-- Stores how far the hub has handed changes on ($3), the snapshot that its clients certainly have ($4), and the timeline
-- ($5).
-- A stored cursor never runs ahead of the server's own history: every transaction that its snapshot calls finished has its
-- record earlier in the WAL than this row, so after a crash or a failover either both survive or the cursor is older.
-- Returns this row's place in the WAL and how far the WAL is flushed, which shows when an earlier cursor became safe.
-- Locks: the hub's own row.
insert into roost.cursor (node, system_identifier, snapshot, recovery, timeline)
values ($1, $2::bigint, $3::pg_snapshot, $4::pg_snapshot, $5::integer)
on conflict (node) do update
set system_identifier = excluded.system_identifier, snapshot = excluded.snapshot, recovery = excluded.recovery,
    timeline = excluded.timeline, stored_at = clock_timestamp()
returning (pg_current_wal_insert_lsn() - '0/0')::bigint, (pg_current_wal_flush_lsn() - '0/0')::bigint

-- name: ClaimNode
-- Takes this session's share of the hub's name: every hub connected under the name has one, for as long as its session
-- lasts. $1 is the doorbell. The lock is only tried: a role that takes it for itself cannot keep a hub from its work.
-- Locks: advisory lock (1919905649, doorbell), shared, tried.
select pg_try_advisory_lock_shared(1919905649, $1::int4)

-- name: HubSessions
-- The sessions other than this one that have a share of the name with the doorbell $1 (ClaimNode in Feed.sql): one for each
-- hub connected under it. The time of the last activity is null if this role may not see it.
-- Locks: none.
select l.pid, case when a.client_addr is not null then 'at ' || host(a.client_addr)
           when a.client_port = -1 then 'on Postgres'' own machine' else 'elsewhere' end,
       to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'), a.state_change
from pg_locks l left join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.classid = 1919905649 and l.objid = $1::int4::oid and l.objsubid = 2 and l.granted
  and l.database = (select oid from pg_database where datname = current_database()) and l.pid <> pg_backend_pid()
order by a.backend_start, l.pid

-- name: DoorbellGranted
-- True if the session with this process ID ($1) has the doorbell's lock, whatever the session itself reports.
-- Locks: none.
select exists (
    select from pg_locks
    where locktype = 'advisory' and classid = 1919905651 and pid = $1::int4 and granted and mode = 'ExclusiveLock'
)

-- name: Prune
-- Deletes changes older than the retention ($1, seconds) from the next 1,000 changes after the primary key ($2, $3).
--
-- Invariants
--   * Changes are taken by the primary key, oldest transaction first, and then checked for their age: a scan by age would
--     read the whole outbox. A batch starts after the previous one: everything before is dead index entries until vacuum
--     comes, and walking over them costs more than the deletes.
--   * A trigger records deletions in roost.meta, in the same transaction (SchemaRecovery.sql).
--   * A change is as old as its statement, not its commit. Changes of a transaction that lasted longer than the retention
--     stay until they have existed for 10 minutes, so that returning clients find them: the newest epoch from before then
--     shows which transactions were finished.
--   * A row of the outbox is never updated, so within one statement its ctid identifies it.
-- Returns the number of changes examined, the number deleted, the key of the last one examined, and how full the queue of
-- notifications is. Nothing is examined if another session has the turn.
-- Locks: the row of roost.meta, skipped if another session holds it (a pruning hub, a migration), so that no session waits;
-- then the rows it deletes, which only pruners lock.
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
-- The size of the outbox: approximate number of rows, bytes including out-of-line storage, and the age of the oldest row in
-- seconds. Read now and then, while the metrics are being read.
--
-- A few rows are counted; for many, the count is that of the last vacuum or analyze, which after a quiet hour may be zero
-- while some rows exist. A table that is large on disk is not counted, because most of it may be deleted rows.
--
-- The oldest row is the first by primary key: a transaction that began earlier may have written later, by less than its
-- duration. Locks: none.
select case when reltuples < 10000 and pg_table_size(oid) < 64 * 1024 * 1024
            then (select count(*) from (select from roost.change limit 10001) few)
            else greatest(reltuples, 0)::bigint end,
       pg_table_size(oid),
       coalesce((select extract(epoch from clock_timestamp() - at) from roost.change order by xid, id limit 1), 0)
from pg_class
where oid = 'roost.change'::regclass

-- name: SessionOfConditions
-- The settings of the session that decides clients' filters, besides Sessions.sql.
--
-- Invariants
--   * Whatever a filter makes Postgres do, it writes nothing and ends in time: each statement brings its own
--     statement_timeout; this one is for a statement that lacks it.
--   * A wait for a lock (on a table that is being altered) ends earlier than the statement, so that it is not mistaken for
--     a filter that computes too long. This timeout, too, comes with each statement.
set application_name = 'roost filters';
set default_transaction_read_only = on;
set statement_timeout = '2s';
set lock_timeout = '1s';
set idle_in_transaction_session_timeout = '5s';
set max_parallel_workers_per_gather = 0;
set jit = off
