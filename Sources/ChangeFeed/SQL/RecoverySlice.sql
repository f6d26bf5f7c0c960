-- As much of what some recoveries miss as the hub can wait for, between two windows of the feed: @missed@ is
-- RecoveryWindow.sql with a limit.
--
-- Invariants
--   * Large rows must not come by the thousand, so the answer ends behind the row that fills @most@ bytes (as they are
--     stored, which may be compressed). Its first row is always there.
--   * The last column is the number of rows there were: with fewer in the answer, or more than the limit, there is more.
-- Locks: none.
select id, relid, op, reduced, at, committed, record, old_record, xid, rows
from (
    select *, count(*) over () as rows,
           coalesce(
               sum(coalesce(pg_column_size(record), 0) + coalesce(pg_column_size(old_record), 0))
                   over (rows between unbounded preceding and 1 preceding), 0) as before
    from (@missed@) as missed
) as sized
where before < @most@
