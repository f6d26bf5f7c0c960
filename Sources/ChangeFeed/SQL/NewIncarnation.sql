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
