-- Deletes what is older than the retention ($1, seconds) among the next 1,000 changes behind ($2, $3), the primary key.
--
-- Invariants
--   * Changes are taken by the primary key, oldest transaction first, and then asked for their age: a scan by age would
--     read the whole outbox. A batch starts behind the last one: what lies before is dead index entries until vacuum
--     comes, and to walk over them costs more than the deletes.
--   * meta.pruned_xid is the highest transaction of which a change was deleted, and commits with the deletes. Whoever
--     holds a cursor that may not cover that transaction may have missed a change.
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
), gone as (
    delete from roost.change
    where ctid = any (array(
        select ctid from oldest where at < clock_timestamp() - make_interval(secs => $1::float8)))
    returning xid
), noted as (
    update roost.meta m set pruned_xid = latest.xid
    from (select xid from gone order by xid desc limit 1) latest
    where m.pruned_xid is null or m.pruned_xid < latest.xid
), last as (
    select xid, id from oldest order by xid desc, id desc limit 1
)
select (select count(*) from oldest), (select count(*) from gone), (select xid from last), (select id from last),
       pg_notification_queue_usage()
