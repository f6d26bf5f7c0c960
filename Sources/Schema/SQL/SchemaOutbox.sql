-- The outbox: one row per changed row of a watched table, written in the writer's own transaction, and the doorbell that wakes hubs.
--
-- Invariants
--   * change.id comes from a sequence without a cache: whoever changes a row after another transaction did also draws the higher id,
--     so ordering by id never turns round the history of one row. A cache would break this.
--   * change.xid is the top-level transaction id, also inside savepoints: a snapshot window is cut by it.
--   * The primary key is the only index. It serves the windows (xid >= x, xid = any) and pruning (oldest xid first), and lets a FOR ALL
--     TABLES publication accept the deletes. A second index costs every writer.
--   * record is json, not jsonb: it keeps the column order, costs the writer less, and cannot fail his statement on \u0000.
--   * A row of change is never updated after its transaction, only deleted.
--   * meta.pruned_xid is at least the highest transaction of which a change was deleted; it is committed together with the deletes
--     (SchemaRecovery.sql).
--   * cursor.recovery never sees more than cursor.snapshot does. Both are stored together, so what holds for one in a crash of the
--     server holds for the other.
--   * The doorbell: for each hub a writer either holds the hub's advisory lock shared until he has committed (then the hub is awake, or
--     waits for that lock and looks again when it has it), or he rings. The notification carries nothing.
--   * A writer never fails because of roost. Postgres refuses the COMMIT of a transaction that notifies while the queue of notifications
--     is full, so a writer does not ring from 90 % on, and the hub's slow poll finds his change. The queue is looked at only by who would
--     ring: "and" is evaluated from the left, and left of it are the locks. PREPARE TRANSACTION refuses a transaction that has notified,
--     so nobody rings where a server allows prepared transactions: the hub looks more often (FeedSession).
-- Lock order: migrations take advisory lock (1919905651, 0) first, so two of them run one after the other. Writers of must_ring take
-- (1919905650, 0), then the catalog.

do $$
begin
    -- CREATE SCHEMA wants the right to create on the database even where the schema exists.
    if to_regnamespace('roost') is null then
        create schema roost;
    end if;
end
$$;

create table roost.meta (
    singleton boolean primary key default true check (singleton),
    schema_version integer not null,
    owns_messages boolean not null default false,
    pruned_xid xid8,
    unpruned xid8[] not null default '{}',
    unread_lsn pg_lsn
);
insert into roost.meta (schema_version) values (0);
comment on column roost.meta.owns_messages is
    'realtime.messages was made by roost, whose hubs therefore delete its rows after their retention.';
comment on column roost.meta.pruned_xid is
    'The highest transaction of which changes were deleted: who has not seen it cannot be told what he missed.';
comment on column roost.meta.unpruned is
    'Transactions up to pruned_xid that were running when it was noted: of these no change was deleted.';
comment on column roost.meta.unread_lsn is
    'Up to here the WAL was unread when a capture was found to be interrupted; null: nothing was, or it is stored by now.';

create table roost.node (
    name text primary key,
    doorbell integer generated always as identity unique
);
comment on table roost.node is 'One row per hub. Its doorbell is the second key of the advisory lock the hub sleeps on.';

create table roost.cursor (
    node text primary key references roost.node (name) on update cascade on delete cascade,
    system_identifier bigint not null,
    snapshot pg_snapshot not null,
    stored_at timestamptz not null default clock_timestamp(),
    recovery pg_snapshot,
    timeline integer,
    list_turn bigint not null default 0
) with (fillfactor = 50);
comment on table roost.cursor is 'How far each hub has handed changes on: all that its snapshot sees.';
comment on column roost.cursor.recovery is
    'What every client of the hub certainly has: where they go on if the hub is killed. Null where nothing was stored.';
comment on column roost.cursor.timeline is 'The timeline of the WAL that the snapshots were taken on.';
comment on column roost.cursor.list_turn is 'Which claims of session_list count. It moves on when somebody is left out.';

create table roost.change (
    id bigint generated always as identity (cache 1),
    xid xid8 not null default pg_current_xact_id(),
    relid oid not null,
    op "char" not null,
    reduced boolean not null default false,
    at timestamptz not null default clock_timestamp(),
    record json,
    old_record json,
    lsn pg_lsn,
    row_text text,
    old_row_text text,
    primary key (xid, id)
) with (autovacuum_vacuum_scale_factor = 0.05);
comment on table roost.change is 'Changes of the watched tables, kept for the retention of the hub (24 h by default).';
comment on column roost.change.relid is 'The table, or the root of the partition tree it belongs to.';
comment on column roost.change.op is
    'Insert, Update, Delete, Message (of realtime.messages), Notification (of roost.notify), Truncate, X: changes were deleted, Lost: '
    'a change that could not be recorded.';
comment on column roost.change.reduced is
    'The row was over 1 MiB; only its values of up to 64 bytes were kept. Of a message: its payload was over 3,000,000 bytes and was '
    'not kept.';
comment on column roost.change.lsn is 'Where the transaction that changed the row was committed; null where a trigger wrote this.';
comment on column roost.change.row_text is
    'The row as Postgres writes it, where its JSON is not exact; empty where it is; null where nobody looked.';
comment on column roost.change.old_row_text is 'As row_text, of the row before.';

-- True if a writer has to ring; tries the locks. write_must_ring writes its body anew when hubs come and go: reading roost.node in every
-- statement costs 9 us.
create function roost.must_ring() returns boolean language sql volatile as 'select false';

-- Lock order: advisory lock (1919905650, 0) first, so that two hubs that come at once do not replace the function at the same time.
create function roost.write_must_ring() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(1919905650, 0);
    execute 'create or replace function roost.must_ring() returns boolean language sql volatile as ' || quote_literal(
        'select not (' || coalesce((
            select string_agg(format('pg_catalog.pg_try_advisory_xact_lock_shared(1919905651, %s)', doorbell),
                ' and ' order by doorbell)
            from roost.node
        ), 'true') || ') and pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.9');
end
$$;
select roost.write_must_ring();

create function roost.on_node() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform roost.write_must_ring();
    return null;
end
$$;
create trigger node after insert or delete on roost.node for each row execute function roost.on_node();

-- True if the writer, who holds no hub's lock, may notify.
create function roost.may_notify() returns boolean language sql stable as $$
    select pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0'
$$;

-- True if the settings that shape a value's text are those that rows are written with: a row reads the same whoever wrote it. DateStyle
-- is among them, as ranges of dates and texts of rows show it.
create function roost.is_pinned() returns boolean language sql stable as $$
    select pg_catalog.current_setting('TimeZone') operator(pg_catalog.=) any ('{UTC,Etc/UTC,GMT}'::pg_catalog.text[])
        and pg_catalog.current_setting('bytea_output') operator(pg_catalog.=) 'hex'
        and pg_catalog.current_setting('IntervalStyle') operator(pg_catalog.=) 'postgres'
        and pg_catalog.current_setting('extra_float_digits')::pg_catalog.int4 operator(pg_catalog.>) 0
        and pg_catalog.left(pg_catalog.current_setting('DateStyle'), 3) operator(pg_catalog.=) 'ISO'
$$;

-- Sets the settings, for this transaction at most, and returns what they were. Where the statement fails in between, Postgres takes them
-- back itself.
create function roost.pin() returns text[] language plpgsql as $$
declare
    before text[] := array[
        pg_catalog.current_setting('TimeZone'), pg_catalog.current_setting('bytea_output'),
        pg_catalog.current_setting('IntervalStyle'), pg_catalog.current_setting('extra_float_digits'),
        pg_catalog.current_setting('DateStyle')];
begin
    perform roost.unpin('{UTC,hex,postgres,1,ISO}');
    return before;
end
$$;

create function roost.unpin(settings text[]) returns void language plpgsql as $$
begin
    perform pg_catalog.set_config('TimeZone', settings[1], true);
    perform pg_catalog.set_config('bytea_output', settings[2], true);
    perform pg_catalog.set_config('IntervalStyle', settings[3], true);
    perform pg_catalog.set_config('extra_float_digits', settings[4], true);
    perform pg_catalog.set_config('DateStyle', settings[5], true);
end
$$;

revoke execute on function
    roost.must_ring(), roost.write_must_ring(), roost.on_node(), roost.may_notify(), roost.is_pinned(), roost.pin(), roost.unpin(text[])
from public;
