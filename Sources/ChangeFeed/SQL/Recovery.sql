-- What members missed, and what of it may be gone.

-- name: RecoveryGround
-- What decides whether a recovery can begin: the highest transaction of which changes are gone already, and those below
-- it of which none are.
-- Read when recoveries begin, and again for those that had to wait, when the statement that reads for them was sent.
-- Locks: none.
select pruned_xid, array_to_string(unpruned, ',') from roost.meta

-- name: RecoveryStored
-- What the hub's last process left for its clients: from where they may have to be told again. No row where no hub of
-- this name stored anything yet; a version before catch-up left only its own cursor.
-- Locks: none.
select coalesce(recovery, snapshot) from roost.cursor where node = $1

-- name: RecoveryWindow
-- What some recoveries miss, all in one: changes that the snapshot {upper} sees and not all of their starts have.
--
-- Invariants
--   * {upper} is a snapshot that the feed itself read up to, so nothing of it is still to come live, and nothing of
--     what comes live is in it.
--   * A change is in the answer if any of the starts lacks it: xid >= the lowest xmax of them, or one of the
--     transactions that were running in any of them and lie below that, so no row comes twice. Who has it already is
--     found out row by row, by its xid.
--   * The bounds are literals, so that the planner sees how narrow the range is.
--   * Messages ('M') are not replayed here, but they count: a limit that looked for other rows among many of them would
--     hold up the windows. So does what {wanted} says concerns nobody (RowPrefilter+SQL.swift); neither takes its
--     record along.
--   * "offset 0" keeps the planner from looking for texts once per column that asks.
--   * {rest} is either a limit and no order, which the index ends early (rows are then sorted by the hub), or an order;
--     then {only} leaves out what is not wanted.
-- Locks: none.
select id, relid, op, reduced, at::text as at, {committed} as committed,
       case when wanted then {record} end as record, case when wanted then {old} end as old_record,
       case when wanted then {text} end as row_text, case when wanted then {oldtext} end as old_row_text,
       {deletion} as deletion, xid, wanted
from (
    select *, {wanted} as wanted
    from roost.change
    where xid >= '{xmax}'::xid8 and xid < '{bound}'::xid8 and pg_visible_in_snapshot(xid, '{upper}'::pg_snapshot)
    offset 0
) later {only}
union all
select id, relid, op, reduced, at::text, {committed},
       case when wanted then {record} end, case when wanted then {old} end,
       case when wanted then {text} end, case when wanted then {oldtext} end, {deletion}, xid, wanted
from (
    select *, {wanted} as wanted
    from roost.change
    where xid = any ('{xip}'::xid8[]) and pg_visible_in_snapshot(xid, '{upper}'::pg_snapshot)
    offset 0
) earlier {only}
{rest}

-- name: RecoverySlice
-- As much of what some recoveries miss as the hub can wait for, between two windows of the feed: {missed} is
-- RecoveryWindow in Recovery.sql with a limit.
--
-- Invariants
--   * Large rows must not come by the thousand, so the answer ends behind the row that fills {most} bytes (as they are
--     stored, which may be compressed).
--   * The first row that was looked at is always there, wanted or not, since the last columns tell how many were looked
--     at and how many of them are wanted. With fewer wanted ones in the answer, or more looked at than the limit, there
--     is more.
-- Locks: none.
select id, relid, op, reduced, at, committed, record, old_record, row_text, old_row_text, deletion, xid, wanted,
       wanted_rows, rows
from (
    select *, row_number() over () as place, count(*) over () as rows,
           count(*) filter (where wanted) over () as wanted_rows,
           coalesce(
               sum(coalesce(pg_column_size(record), 0) + coalesce(pg_column_size(old_record), 0)
                   + coalesce(pg_column_size(row_text), 0) + coalesce(pg_column_size(old_row_text), 0))
                   over (rows between unbounded preceding and 1 preceding), 0) as before
    from ({missed}) as missed
) as sized
where place = 1 or wanted and before < {most}
