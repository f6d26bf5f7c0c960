-- Deletes up to 5,000 changes older than the retention ($1, seconds), oldest transaction first.
-- The oldest are taken by the primary key and then asked for their age: a scan by age would read the whole outbox.
-- Locks: the rows it deletes; other hubs skip what is being deleted, so two pruning hubs do not wait for each other.
with oldest as materialized (
    select xid, id, at from roost.change order by xid, id limit 5000 for update skip locked
)
delete from roost.change c using oldest o
where c.xid = o.xid and c.id = o.id and o.at < clock_timestamp() - make_interval(secs => $1::float8)
