-- Missed changes of members, and the part of them that may be gone.

-- name: RecoveryGround
-- Decides whether a recovery can begin: the highest transaction that has lost changes, and those below it that have lost
-- none.
-- Read when recoveries begin, and again, for those that had to wait, when the statement that reads for them has been sent.
-- Locks: none.
select pruned_xid, array_to_string(unpruned, ',') from roost.meta

-- name: RecoveryStored
-- The position that the hub's last process left for its clients, from which they may need changes again. No row if no hub
-- of this name has stored anything yet; a version before catch-up left only its own cursor.
-- Locks: none.
select coalesce(recovery, snapshot) from roost.cursor where node = $1

-- name: RecoveryWindow
-- The missed changes of several recoveries at once: changes that the snapshot {upper} sees and that not all of their starts
-- have.
--
-- Invariants
--   * {upper} is a snapshot up to which the feed itself has read, so nothing of it is still to come live, and it contains
--     no change that comes live.
--   * A change is in the result if any of the starts lacks it: xid >= their lowest xmax, or one of the transactions that
--     were running in any of them and lie below that, so no row comes twice. The hub determines row by row, by xid, which
--     members already have it.
--   * The bounds are literals, so that the planner sees how narrow the range is.
--   * Messages ('M') are not replayed here, but they count: a limit that had to find other rows among many of them would
--     hold up the windows. So do rows that {wanted} says concern no member (RowPrefilter in RecoveryStatement.swift); neither kind comes
--     with its record.
--   * "offset 0" keeps the planner from searching for texts once for each column that needs the result.
--   * {rest} is either a limit without an order, which the index ends early (the hub then sorts the rows), or an order;
--     then {only} leaves out unwanted rows.
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
-- The part of several recoveries' missed changes that the hub can wait for, between two windows of the feed: {missed} is
-- RecoveryWindow in Recovery.sql with a limit.
--
-- Invariants
--   * Large rows must not come by the thousand, so the result ends after the row that reaches {most} bytes (as stored,
--     possibly compressed).
--   * The first row examined is always in the result, wanted or not, because the last columns have the number of rows
--     examined and the number of wanted ones. If the result has fewer wanted rows, or more were examined than the limit,
--     there is more.
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
