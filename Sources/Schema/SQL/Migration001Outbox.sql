-- The outbox: one row per changed row of a watched table, written in the writer's own transaction.
--
-- Invariants
--   * change.id comes from a sequence without a cache: whoever changes a row after another transaction did also draws
--     the higher id, so ordering by id never turns round the history of one row. A cache would break this.
--   * change.xid is the top-level transaction id, also inside savepoints: it is what a snapshot window is cut by.
--   * The primary key is the only index. It serves the windows (xid >= x, xid = any) and pruning (oldest xid first),
--     and lets a FOR ALL TABLES publication accept the deletes. A second index costs every writer.
--   * record is json, not jsonb: it keeps the column order, costs the writer less, and cannot fail his statement on
--     \u0000.
-- Lock order: migrations take advisory lock (1919905651, 0) first, so two of them run one after the other.

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
    schema_version integer not null
);
insert into roost.meta (schema_version) values (0);

create table roost.node (
    name text primary key,
    doorbell integer generated always as identity unique
);
comment on table roost.node is
    'One row per hub. Its doorbell is the second key of the advisory lock the hub sleeps on.';

create table roost.cursor (
    node text primary key references roost.node (name) on update cascade on delete cascade,
    system_identifier bigint not null,
    snapshot pg_snapshot not null,
    stored_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table roost.cursor is 'How far each hub has handed changes on: all that its snapshot sees.';

create table roost.change (
    id bigint generated always as identity (cache 1),
    xid xid8 not null default pg_current_xact_id(),
    relid oid not null,
    op "char" not null,
    reduced boolean not null default false,
    at timestamptz not null default clock_timestamp(),
    record json,
    old_record json,
    primary key (xid, id)
) with (autovacuum_vacuum_scale_factor = 0.05);
comment on table roost.change is 'Changes of the watched tables, kept for the retention of the hub (24 h by default).';
comment on column roost.change.relid is 'The table, or the root of the partition tree it belongs to.';
comment on column roost.change.reduced is 'The row was over 1 MiB; only its values of up to 64 bytes were kept.';
