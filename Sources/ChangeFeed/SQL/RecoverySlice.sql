-- As much of what some recoveries miss as the hub can wait for, between two windows of the feed: {missed} is
-- RecoveryWindow.sql with a limit.
--
-- Invariants
--   * Large rows must not come by the thousand, so the answer ends behind the row that fills {most} bytes (as they are
--     stored, which may be compressed).
--   * The first row that was looked at is always there, wanted or not, since the last columns tell how many were looked
--     at and how many of them are wanted. With fewer wanted ones in the answer, or more looked at than the limit, there
--     is more.
-- Locks: none.
select id, relid, op, reduced, at, committed, record, old_record, xid, wanted, wanted_rows, rows
from (
    select *, row_number() over () as place, count(*) over () as rows,
           count(*) filter (where wanted) over () as wanted_rows,
           coalesce(
               sum(coalesce(pg_column_size(record), 0) + coalesce(pg_column_size(old_record), 0))
                   over (rows between unbounded preceding and 1 preceding), 0) as before
    from ({missed}) as missed
) as sized
where place = 1 or wanted and before < {most}
