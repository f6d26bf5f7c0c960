-- The session that stores rows read from the WAL, and the lead among hubs (SchemaCapture.sql).

-- name: SessionOfCapture
-- The settings of the storing session, besides Sessions.sql.
-- A commit that was acknowledged to the slot must survive a crash and a standby's takeover, so synchronous_commit is on
-- whatever the database's setting is. Statements are prepared once, and their parameters differ only in length.
-- A session that waits too long for a lock on the outbox starts over and blames no row (store_begins limits the time a
-- row may take).
set application_name = 'roost capture';
set lock_timeout = '10s';
set synchronous_commit = on;
set plan_cache_mode = force_generic_plan;
set enable_seqscan = on;
set jit = off;
set max_parallel_workers_per_gather = 0

-- name: SessionOfStream
-- The settings of the walsender's session, besides Sessions.sql. If the hub vanishes, its walsender releases the slot.
-- Names of tables, functions and roles in values are qualified, because another session has another search path.
set application_name = 'roost capture';
set wal_sender_timeout = '8s';
set search_path = pg_catalog, pg_temp

-- name: RawTexts
-- A setting of both sessions if the database stores bytes without an encoding, when Postgres could not translate the
-- stream: one byte that is not UTF-8, or no character, would end the stream for good.
set client_encoding = 'SQL_ASCII'

-- name: Requirements
-- The requirements for reading changes from the WAL: the WAL's level, the slot's name, the number of tables in the
-- publication (null if there is no publication), this role's name, and whether the slot exists.
-- Locks: none.
select current_setting('wal_level'), roost.slot_name(),
       (select count(t.prrelid) from pg_publication p left join pg_publication_rel t on t.prpubid = p.oid
        where p.pubname = 'roost' group by p.oid),
       format('"%s"', replace(current_user, '"', '""')),
       exists (select from pg_replication_slots where slot_name = roost.slot_name())

-- name: TryLead
-- Takes the lead for this session, unless another hub has it.
-- Locks: advisory lock (1919905648, 1), tried only; until the session ends.
select pg_try_advisory_lock(1919905648, 1)

-- name: LeaderThatHangs
-- Ends the leading session if it has done nothing for 6 s ($1, in seconds): a live hub runs a statement every 2 s. A
-- session in the middle of a statement gets five times as long. Its walsender ends with it. Returns the process ids
-- that were ended.
-- Locks: none.
with leader as (
    select l.pid from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.classid = 1919905648 and l.objid = 1 and l.objsubid = 2 and l.granted
      and l.database = (select oid from pg_database where datname = current_database()) and l.pid <> pg_backend_pid()
      and clock_timestamp() - a.state_change
          > make_interval(secs => $1::float8 * case when a.state = 'active' then 5 else 1 end)
), ended as (
    select pid, pg_terminate_backend(pid) as is_ended from leader
    union all
    select s.active_pid, pg_terminate_backend(s.active_pid) from pg_replication_slots s
    where s.slot_name = roost.slot_name() and s.active_pid is not null and exists (select from leader)
)
select pid from ended where is_ended

-- name: EndReader
-- Ends the session that reads the slot: this session leads, so no other may read it. No row if none does.
-- Locks: none.
select active_pid, pg_terminate_backend(active_pid) from pg_replication_slots
where slot_name = roost.slot_name() and active_pid is not null

-- name: SlotState
-- Whether the slot can be read, and how far it was acknowledged; no row if there is none.
-- Columns that some versions lack are read through to_jsonb.
-- Locks: none.
select plugin = 'pgoutput' and database = current_database() and wal_status is distinct from 'lost'
           and to_jsonb(s) ->> 'invalidation_reason' is null,
       confirmed_flush_lsn, (pg_current_wal_lsn() - confirmed_flush_lsn)::bigint
from pg_replication_slots s where slot_name = roost.slot_name()

-- name: StoredPosition
-- The position up to which changes are stored; no row if none ever were, or if the row came with a dump of another
-- database.
-- Locks: none.
select lsn, partial_lsn, partial_rows from roost.capture where slot = roost.slot_name()

-- name: LockSlot
-- The lock held while the slot is created or dropped: by `roost watch`, `roost unwatch` and the leading hub.
-- Locks: advisory lock (1919905648, 0), until UnlockSlot.
select pg_try_advisory_lock(1919905648, 0)

-- name: UnlockSlot
-- Locks: gives back advisory lock (1919905648, 0).
select pg_advisory_unlock(1919905648, 0)

-- name: SlotIsGone
-- Records that the WAL is not being read, before another slot is created: the creator then records that changes are
-- missing.
-- Locks: the row of roost.capture.
update roost.capture set lsn = null, partial_lsn = null, partial_rows = 0 where slot = roost.slot_name()

-- name: DropSlot
-- Locks: the slot, which must have no reader.
select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = roost.slot_name()

-- name: ForgetCapture
-- No table is read from the WAL any more. Runs before the slot is dropped: a row without a slot means that changes are
-- missing.
-- Locks: the row of roost.capture.
delete from roost.capture

-- name: BeginCapture
-- A slot was created, or exists and was never read: changes are read from $1 on. Returns whether some are missing.
-- Locks: the rows of roost.capture and roost.meta.
select roost.begin_capture($1::pg_lsn)

-- name: BlockersOfSlot
-- The transactions that the creation of a slot by process $1 waits for: it starts once all writing transactions have
-- ended. Empty if none are known.
-- Locks: none.
select coalesce(
    (select string_agg(
        case when p.pid = 0 then 'a prepared transaction'
        else format('process %s%s', p.pid, coalesce(
            format(' (%s, in a transaction since %s)', nullif(a.application_name, ''), to_char(a.xact_start, 'HH24:MI:SS TZ')), '')) end,
        ', ')
     from unnest(pg_blocking_pids($1::int4)) p (pid) left join pg_stat_activity a on a.pid = p.pid), '')

-- name: StoreBegins
-- Locks: the row of roost.capture.
select roost.store_begins($1::pg_lsn, $2::pg_lsn, $3::bigint, $4::pg_lsn, $5::pg_lsn, $6::bigint, $7::integer, $8::bigint[])

-- name: StoreLost
-- Stores, in place of rows, that they cannot be stored: takes the arrays that the statements of StoreStatement begin
-- with, and the table's oid.
-- Locks: rows of roost.change.
insert into roost.change (id, relid, op, at, lsn) overriding system value
select ((select pg_catalog.current_setting('roost.ids')::int8[]))[b.nth], $5::oid, 'L', b.at, b.lsn
from unnest($1::int4[], $2::"char"[], $3::timestamptz[], $4::pg_lsn[]) b (nth, op, at, lsn)

-- name: StoreEnds
-- Locks: advisory locks (1919905651, doorbell), shared, tried.
select roost.store_ends()

-- name: DescribeTypes
-- The names of types ($1, oids), as a cast reads them; for a domain its base type's name, because row_to_json looks
-- through the domain and its constraint may have changed since the value was written. Null for a type that is gone. The
-- type modifier is omitted: a value has been truncated to it already.
-- Locks: none.
with recursive base (type, oid) as (
    select t, t from unnest($1::oid[]) t
    union all
    select b.type, d.typbasetype from base b join pg_type d on d.oid = b.oid and d.typtype = 'd'
)
select b.type, case when t.oid is not null then format_type(t.oid, -1) end
from base b left join pg_type t on t.oid = b.oid
where t.typtype is distinct from 'd'

-- name: DescribeTable
-- The current columns of a table ($1, an oid), in order, with its name and the expressions of generated columns.
-- Locks: none, but AccessShare on the table for pg_get_expr.
select format('%I.%I', n.nspname, c.relname), a.attname,
       case when a.attgenerated = 's' then pg_get_expr(d.adbin, d.adrelid) end, a.attgenerated <> ''
from pg_class c join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.oid = $1::oid order by a.attnum

-- name: RefreshTextNeeds
-- A table is read for the first time, or was altered, so its rows may need texts (SchemaCapture.sql).
-- Locks: advisory lock (1919905650, 1) if there is news.
select roost.refresh_text_needs()

-- name: Heartbeat
-- The leader's sign of life: returns the bytes of WAL that the slot keeps and that are not stored yet, and the number
-- of published tables. No row if there is no slot.
-- Locks: none.
select (pg_current_wal_lsn() - restart_lsn)::bigint, (pg_current_wal_lsn() - confirmed_flush_lsn)::bigint,
       (select count(*) from pg_publication p join pg_publication_rel t on t.prpubid = p.oid where p.pubname = 'roost')
from pg_replication_slots where slot_name = roost.slot_name()

-- name: SettleCaptures
-- Has clients told once more of an interruption, once the WAL that was unread before it is stored (SchemaCapture.sql).
-- Locks: the row of roost.meta if there was one.
select roost.settle_captures()
