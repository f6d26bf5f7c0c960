-- Deletes what is older than the retention ($1, seconds) among the next 1,000 changes behind ($2, $3), the primary key.
--
-- Invariants
--   * Changes are taken by the primary key, oldest transaction first, and then asked for their age: a scan by age would
--     read the whole outbox. A batch starts behind the last one: what lies before is dead index entries until vacuum
--     comes, and to walk over them costs more than the deletes.
--   * What is deleted is noted in roost.meta by a trigger, in the same transaction (Migration010Epochs.sql).
--   * A change is as old as its statement, not as its commit. What a transaction that lasted longer than the retention
--     has brought just now stays until it was there for 10 minutes, so that clients that come back find it: the newest
--     epoch of before then tells what was finished.
--   * A row of the outbox is never updated, so within one statement its ctid is its name.
-- Returns how many changes were looked at, how many deleted, the key of the last one looked at, and how full the queue
-- of notifications is. Nothing is looked at where it is somebody else's turn.
-- Locks: the row of roost.meta, skipped where somebody has it (another hub that prunes, a migration), so that nobody
-- waits; then the rows it deletes, which only pruners lock.
with turn as materialized (
    select pruned_xid from roost.meta for update skip locked
), oldest as materialized (
    select ctid, xid, id, at from roost.change
    where exists (select from turn) and (xid, id) > ($2::xid8, $3::bigint)
    order by xid, id limit 1000
), settled as materialized (
    select snapshot from roost.epoch
    where made_at < clock_timestamp() - interval '10 minutes' order by made_at desc limit 1
), gone as (
    delete from roost.change
    where ctid = any (array(
        select ctid from oldest
        where at < clock_timestamp() - make_interval(secs => $1::float8)
            and coalesce(pg_visible_in_snapshot(xid, (select snapshot from settled)), true)))
    returning xid
), last as (
    select xid, id from oldest order by xid desc, id desc limit 1
)
select (select count(*) from oldest), (select count(*) from gone), (select xid from last), (select id from last),
       pg_notification_queue_usage()
