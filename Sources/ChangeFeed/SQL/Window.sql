-- The outbox as a window reads it.

-- name: Window
-- One window: the rows that this statement's snapshot S2 sees and the last window's snapshot S1 did not.
--
-- Invariants
--   * READ COMMITTED: the statement has one snapshot, and pg_current_snapshot() in it is that snapshot. It comes as the
--     first row (id 0) and is the next S1; all of the rows have to be handed on before it counts.
--   * That row also has, if requested, the catalog's version (CatalogVersion in Catalog.sql, in the place of "committed"),
--     the members tables of scopes that the window wrote (MembersInWindow in Window.sql, in the place of "record"), and the
--     check for deletions from the outbox (OutboxLook in Losses.sql, in the place of "old_record"). If tables are skipped,
--     it counts their rows (PassedInWindow in Window.sql, in the place of "relid").
--   * A row that is visible although its transaction is not finished came by another route, as out of a dump; it is left
--     out, or it would come in every window until then (ForeignChanges in Epochs.sql deletes it).
--   * A row is new if its transaction was not finished in S1: either xid >= xmax(S1), or xid in xip(S1).
--   * :committed is the time of the row's commit, if the server keeps it, and null if "at" already has it: for rows read
--     from the WAL (SchemaCapture.sql).
--   * :record, :old_record and :texts are the columns, made legible if the database has texts that are not UTF-8
--     (OutboxForm).
--   * :deletion names the transaction that deleted a row (WriterTransaction).
--   * S1 is its xmax ($1) and its xip ($2): a session keeps the plans of its repeated reads (WindowStatements.swift). The
--     planner does not see how narrow the range is, which does no harm if it may read the outbox only by its index
--     (SessionOfFeed in Feed.sql). Oids are literals, so that Postgres looks them up by a hash.
-- Locks: none.
select 0 as id, {passed} as relid, ''::"char" as op, false as reduced, pg_current_snapshot()::text as at,
       {version} as committed, {touched} as record, {outbox} as old_record, null::text as row_text, null::text as old_row_text, null::text as deletion
union all
select id, relid, op, reduced, at::text, :committed, :record, :old_record, :texts, :deletion from roost.change
where xid >= $1::xid8 and pg_visible_in_snapshot(xid, (select pg_current_snapshot())) and {heard}
union all
select id, relid, op, reduced, at::text, :committed, :record, :old_record, :texts, :deletion from roost.change
where xid = any ($2::xid8[]) and pg_visible_in_snapshot(xid, (select pg_current_snapshot())) and {heard}
order by id

-- name: HeardInWindow
-- The rows that a window reads if some tables have subscribers and others ({{unheard}}) have none: a part of Window.sql.
--
-- Skipping a hundred thousand rows in this way takes Postgres 12 ms; sorting and sending them takes 75, and the hub as long
-- again. Messages ('M') and entries that are not rows ('T', 'X') are never skipped. Locks: none.
not (relid = any ('{{unheard}}'::oid[]) and op in ('I', 'U', 'D'))

-- name: PassedInWindow
-- Number of rows of a window skipped by HeardInWindow in Window.sql, {most} at most: a part of Window.sql, with the type of
-- the column that it takes the place of.
--
-- They count as rows that the window brought: the hub stays awake for their writers, and its place moves past them.
-- Locks: none.
(select count(*) from (
    select from roost.change
    where xid >= $1::xid8 and relid = any ('{{unheard}}'::oid[]) and op in ('I', 'U', 'D')
        and pg_visible_in_snapshot(xid, (select pg_current_snapshot()))
    union all
    select from roost.change
    where xid = any ($2::xid8[]) and relid = any ('{{unheard}}'::oid[]) and op in ('I', 'U', 'D')
        and pg_visible_in_snapshot(xid, (select pg_current_snapshot()))
    limit {most}
) passed)::oid

-- name: MembersInWindow
-- The changes that a window made to scopes' members tables, as a JSON array, or null: a part of Window.sql, read in its
-- snapshot, so that answers which the window makes wrong are dropped before its first row is judged. For tables in
-- {{members}} the oid; for those in {{narrowed}} each row as an array of the oid, the record and the old record, {mostrows}
-- at most, or the oid alone if the entry is not a row, is large, or lacks the old record.
-- Locks: none.
(select json_agg(change) from (
    select to_json(relid) as change from (
        select relid from roost.change where xid >= $1::xid8 and relid = any ('{{members}}'::oid[])
        union
        select relid from roost.change where xid = any ($2::xid8[]) and relid = any ('{{members}}'::oid[])
    ) tables
    union all
    select case
        when not reduced and op in ('I', 'U', 'D')
            and (op = 'D' or record is not null) and (op = 'I' or old_record is not null)
            and coalesce(pg_column_size(record), 0) + coalesce(pg_column_size(old_record), 0) < 2048
            and coalesce(octet_length(record::text), 0) + coalesce(octet_length(old_record::text), 0) < 8192
        then json_build_array(relid, :record, :old_record) else to_json(relid) end
    from (
        select relid, op, reduced, record, old_record from roost.change
        where xid >= $1::xid8 and relid = any ('{{narrowed}}'::oid[])
        union all
        select relid, op, reduced, record, old_record from roost.change
        where xid = any ($2::xid8[]) and relid = any ('{{narrowed}}'::oid[])
        limit {mostrows}
    ) rows
) written)
