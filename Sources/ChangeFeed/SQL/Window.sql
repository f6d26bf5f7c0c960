-- What a window reads of the outbox.

-- name: Window
-- One window: what this statement's snapshot S2 sees and the last window's snapshot S1 did not.
--
-- Invariants
--   * READ COMMITTED: the statement has one snapshot, and pg_current_snapshot() in it is that snapshot. It comes as the
--     first row (id 0) and is the next S1; all of the rows have to be handed on before it counts.
--   * That row also tells, where asked, the catalog's version (CatalogVersion in Catalog.sql, in the place of "committed") and
--     which members tables of scopes the window wrote (MembersInWindow in Window.sql, in the place of "record"), and whether
--     anything went from the outbox (OutboxLook in Losses.sql, in the place of "old_record"). Where tables are passed over,
--     it counts their rows (PassedInWindow in Window.sql, in the place of "relid").
--   * A row that is here though its transaction is not finished came by another way, as out of a dump; it is left out,
--     or it would come in every window until then (ForeignChanges in Epochs.sql deletes it).
--   * A row is new if its transaction was not finished in S1: either xid >= xmax(S1), or xid in xip(S1).
--   * :committed is when a transaction that is here committed, where the server keeps that, and is null where "at" says it
--     already: of rows that were read from the WAL (Migration014Capture.sql).
--   * :record, :old_record and :texts are the columns, made legible where the database has texts that are no UTF-8
--     (OutboxForm).
--   * :deletion tells of a deleted row what deleted it (WriterTransaction).
--   * S1 is its xmax ($1) and its xip ($2): a session keeps the plan of what it reads by again and again (WindowStatements.swift).
--     That the planner does not see how narrow the range is does no harm where it may read the outbox by its index alone
--     (SessionOfFeed in Feed.sql). Oids are literals, in which Postgres looks up by a hash.
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
-- Which rows of a window are read where somebody hears some tables and nobody hears others ({{unheard}}): a part of
-- Window.sql.
--
-- A hundred thousand rows that are passed over so take Postgres 12 ms; sorted and sent they take 75, and the hub as long
-- again. Messages ('M') and what is no row ('T', 'X') are never passed over. Locks: none.
not (relid = any ('{{unheard}}'::oid[]) and op in ('I', 'U', 'D'))

-- name: PassedInWindow
-- How many rows of a window are passed over by HeardInWindow in Window.sql, {most} at most: a part of Window.sql, in the
-- type of the column that it stands in.
--
-- They count as what the window brought: the hub stays awake for their writers, and its place moves on past them.
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
-- What a window wrote to members tables of scopes, as a JSON array, or null: a part of Window.sql, read in its snapshot, so
-- that answers which the window makes wrong are dropped before its first row is judged. Of the tables in {{members}} the
-- oid; of those in {{narrowed}} each row as an array of the oid, the record and the old record, {mostrows} at most, or
-- the oid alone where it is no row, a large one, or lacks what it was.
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
