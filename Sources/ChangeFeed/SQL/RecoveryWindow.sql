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
       case when wanted then record end as record, case when wanted then old_record end as old_record, xid, wanted
from (
    select *, {wanted} as wanted
    from roost.change
    where xid >= '{xmax}'::xid8 and xid < '{bound}'::xid8 and pg_visible_in_snapshot(xid, '{upper}'::pg_snapshot)
    offset 0
) later {only}
union all
select id, relid, op, reduced, at::text, {committed},
       case when wanted then record end, case when wanted then old_record end, xid, wanted
from (
    select *, {wanted} as wanted
    from roost.change
    where xid = any ('{xip}'::xid8[]) and pg_visible_in_snapshot(xid, '{upper}'::pg_snapshot)
    offset 0
) earlier {only}
{rest}
