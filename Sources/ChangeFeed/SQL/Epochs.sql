-- What ties cursors to the history of a database (Migration010Epochs.sql).

-- name: ServerRun
-- The name of this run of the server, since its start and its last crash; $1 is for the case that it has none.
-- Locks: the new row.
with made as (
    insert into roost.run (id) select $1::bigint where not exists (select from roost.run)
    on conflict do nothing
    returning id
)
select coalesce((select id from made), (select id from roost.run))::text || '/'
       || extract(epoch from pg_postmaster_start_time())::text

-- name: MakeEpoch
-- Writes an epoch ($1) of this hub ($2), in this run of the server ($3) and on this timeline ($4), with the place where
-- the hub went on when it connected ($5, else null). Never in a subtransaction (Migration010Epochs.sql).
-- Locks: the new row.
insert into roost.epoch (id, node, run, timeline, seam, system_identifier, relation)
select $1::bigint, $2, $3, $4::integer, $5::pg_snapshot, system_identifier, 'roost.epoch'::regclass
from pg_control_system()

-- name: MendEpoch
-- After a tool has written the table of epochs anew in place, row 0 says again who wrote it (Migration010Epochs.sql).
-- Locks: the row.
update roost.epoch set born = pg_current_xact_id() where id = 0 and xmin <> born::xid

-- name: Epochs
-- What is known of some epochs ($1) that clients' cursors are of: whether the server has run without a break since ($2 is
-- its run); else up to where the hub that gave them out ($3 for those of before there were epochs) certainly got in this
-- server's own history, and whether that was on the same timeline ($4 is today's). What has no row is not known here.
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
-- Deletes epochs of which no cursor can be younger than the retention ($1, seconds): those whose hub had written another
-- by then.
-- Locks: the rows it deletes.
delete from roost.epoch e
where e.id <> 0 and e.made_at < clock_timestamp() - make_interval(secs => $1::float8) and exists (
    select from roost.epoch n
    where n.node = e.node and n.born > e.born and n.made_at < clock_timestamp() - make_interval(secs => $1::float8)
)

-- name: NewIncarnation
-- Begins the history of this database anew, after a dump was restored into it: no cursor of before means anything, every
-- hub goes on behind the restore ({base}, a snapshot), and nothing is known to be deleted.
--
-- Of the changes that the dump brought, those that name a transaction from before the restore lie behind nobody's place
-- and are pruned as they age. Those from there on would be taken for new: a transaction writes its changes itself, or in
-- subtransactions, which are younger, so a row that is older than the transaction it names was written by somebody else.
-- Does nothing where another hub was first.
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
-- Deletes changes that claim a transaction which is not finished, though they are here: they came by another way than
-- their transaction, as out of a dump. When their number came round, they would be told as something new.
-- Locks: the rows it deletes.
delete from roost.change
where xid >= (select pg_snapshot_xmax(pg_current_snapshot()))
    or xid = any (array(select pg_snapshot_xip(pg_current_snapshot())))
