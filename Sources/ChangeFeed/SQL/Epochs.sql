-- Epochs, which tie cursors to the history of a database (SchemaRecovery.sql).

-- name: ServerRun
-- The name of this run of the server, since its start or its last crash; $1 is the name if it has none yet.
-- Locks: the new row.
with made as (
    insert into roost.run (id) select $1::bigint where not exists (select from roost.run)
    on conflict do nothing
    returning id
)
select coalesce((select id from made), (select id from roost.run))::text || '/'
       || extract(epoch from pg_postmaster_start_time())::text

-- name: MakeEpoch
-- Writes an epoch ($1) of this hub ($2), in this run of the server ($3) and on this timeline ($4), with the place from
-- which the hub continued when it connected ($5, else null). Never in a subtransaction (SchemaRecovery.sql).
-- Locks: the new row.
insert into roost.epoch (id, node, run, timeline, seam, system_identifier, relation)
select $1::bigint, $2, $3, $4::integer, $5::pg_snapshot, system_identifier, 'roost.epoch'::regclass
from pg_control_system()

-- name: MendEpoch
-- After a tool has rewritten the table of epochs in place, makes row 0 name its writer again (SchemaRecovery.sql).
-- Locks: the row.
update roost.epoch set born = pg_current_xact_id() where id = 0 and xmin <> born::xid

-- name: Epochs
-- The database's knowledge of the epochs ($1) of clients' cursors: whether the server has run without a break since ($2 is
-- its run); otherwise how far the hub that issued them ($3 for those from before epochs existed) certainly got in this
-- server's own history, and whether that was on the same timeline ($4 is today's). An epoch without a row is not known
-- here.
-- Locks: none.
select e.id, e.run is not distinct from $2 and e.run is not null, coalesce(next.seam, c.snapshot),
       coalesce(e.timeline = coalesce(next.timeline, $4::integer), false)
from roost.epoch e
left join lateral (
    select n.seam, n.timeline from roost.epoch n
    where n.node = case when e.id = 0 then $3 else e.node end and n.born > e.born and n.seam is not null
    order by n.born limit 1
) next on true
left join lateral (
    select snapshot from roost.cursor where node = case when e.id = 0 then $3 else e.node end
) c on true
where e.id = any ($1::bigint[]) and (e.id <> 0 or e.timeline is not null)

-- name: PruneEpochs
-- Deletes epochs that no cursor younger than the retention ($1, seconds) can carry: those whose hub had written a later one
-- by then.
-- Locks: the rows it deletes.
delete from roost.epoch e
where e.id <> 0 and e.made_at < clock_timestamp() - make_interval(secs => $1::float8) and exists (
    select from roost.epoch n
    where n.node = e.node and n.born > e.born and n.made_at < clock_timestamp() - make_interval(secs => $1::float8)
)

-- name: NewIncarnation
-- Starts another history for this database after a dump was restored into it: earlier cursors mean nothing, every hub
-- continues after the restore ({base}, a snapshot), and nothing counts as deleted.
--
-- Of the changes that the dump brought, those that name a transaction from before the restore come after no hub's position,
-- and are pruned as they age. Those from there on would be taken for new: a transaction writes its changes itself, or in
-- subtransactions, which are younger, so a row older than the transaction it names had another writer.
-- Does nothing if another hub was first.
-- Locks: the row of roost.meta, then rows of roost.change, then the cursors' rows.
do $$
declare
    base pg_snapshot := '{base}';
begin
    perform from roost.meta for update;
    if not exists (
        select from roost.epoch e cross join pg_control_system() s
        where e.xmin <> e.born::xid
            and (e.system_identifier <> s.system_identifier or e.relation <> 'roost.epoch'::regclass)
    ) then
        return;
    end if;
    delete from roost.change
    where xid >= pg_snapshot_xmax(base)
        and (age(xmin) > age(xid::xid) or not pg_visible_in_snapshot(xid, (select pg_current_snapshot())));
    delete from roost.epoch;
    insert into roost.epoch (id, node, system_identifier, relation)
    select 0, '', system_identifier, 'roost.epoch'::regclass from pg_control_system();
    update roost.cursor set snapshot = base, recovery = base;
    update roost.meta set pruned_xid = null, unpruned = '{}';
end
$$

-- name: ForeignChanges
-- Deletes changes that are visible although the transaction they name is not finished: they came by another route than
-- their transaction, as out of a dump. When the transaction's number came up, they would be delivered as new.
-- Locks: the rows it deletes.
delete from roost.change
where xid >= (select pg_snapshot_xmax(pg_current_snapshot()))
    or xid = any (array(select pg_snapshot_xip(pg_current_snapshot())))
