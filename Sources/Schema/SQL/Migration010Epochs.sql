-- Which history of which database the outbox is part of, and what was really deleted from it.
--
-- A cursor means something only in the history of the database that it was made in. Dumps that were restored, data
-- directories that were put back and forks of a copy look the same from inside, and their transaction ids go on. So a
-- hub writes an epoch, a row with a random number, whenever it connects and every few seconds while changes flow, and
-- its cursors carry that number: where the row is missing, the cursor was made in a past that this database does not
-- have.
--
-- Invariants
--   * epoch.born is the transaction that wrote the row, so its low half is the row's own xmin for as long as the row
--     stands where it was written. A row that a dump, COPY or logical replication wrote again has another xmin; copies
--     of the files, pg_upgrade's too, keep it, and so do VACUUM FULL and CLUSTER. Tools that write a table anew in place
--     (pg_repack) do not, but the table keeps its oid and the server its identifier, one of which a dump's copy has not.
--     So no row is written in a subtransaction, none is updated but row 0, which is mended after such a tool, and no
--     migration may rewrite the table. Row 0 stays for ever: two rows that one COPY restored cannot both fit by chance.
--   * epoch.seam is where the hub went on when it connected: its stored cursor, which is certainly part of the server's
--     own history. Null in rows that were written between two connects.
--   * epoch.run names one run of the server: from its start, and since its last crash, which empties the unlogged table
--     run. Within a run no transaction is forgotten, and nothing can have been put back.
--   * Of change, whatever is deleted, by whomever, is noted in the deleting transaction: meta.pruned_xid is at least the
--     highest transaction of which a change is gone, and those in meta.unpruned, which are below it, were running then,
--     so that none of theirs is gone. TRUNCATE waits for whoever has written to the table, so of those that are running
--     when it goes through nothing was there. Changes that claim a transaction which has not happened yet, as a restore
--     brings them, do not count.
--   * After a TRUNCATE the outbox has one row of the operation 'X', for the hubs.
-- Lock order: rows of roost.change, then the row of roost.meta. TRUNCATE: the table, then the row.

create table roost.epoch (
    id bigint primary key,
    node text not null,
    born xid8 not null default pg_current_xact_id(),
    made_at timestamptz not null default clock_timestamp(),
    snapshot pg_snapshot not null default pg_current_snapshot(),
    seam pg_snapshot,
    run text,
    timeline integer,
    system_identifier bigint,
    relation oid
);
create index on roost.epoch (node, born);
comment on table roost.epoch is
    'What the cursors of changes are tagged with; tells a restored database from the one before.';

-- Stands for all cursors of before there were epochs: honoured if there was a hub.
insert into roost.epoch (id, node, timeline, system_identifier, relation)
select 0, '', (select max(timeline) from roost.cursor), system_identifier, 'roost.epoch'::regclass
from pg_control_system();

create unlogged table roost.run (
    singleton boolean primary key default true check (singleton),
    id bigint not null
);
comment on table roost.run is 'One run of the server: it is empty after a crash, and made anew.';

alter table roost.meta add unpruned xid8[] not null default '{}';
comment on column roost.meta.unpruned is
    'Transactions up to pruned_xid that were running when it was noted: of these no change was deleted.';
comment on column roost.change.op is
    'Insert, Update, Delete, Message (of realtime.messages), Truncate; X: this table was truncated.';

create function roost.on_gone() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    present pg_snapshot := pg_current_snapshot();
    latest xid8;
    spared xid8[];
begin
    if tg_op = 'TRUNCATE' then
        latest := (pg_snapshot_xmax(present)::text::numeric - 1)::text::xid8;
        spared := array(select x from pg_snapshot_xip(present) x);
        update roost.meta set pruned_xid = greatest(pruned_xid, latest), unpruned = spared;
        insert into roost.change (relid, op) values (tg_relid, 'X');
        if roost.must_ring() then
            perform pg_notify('roost', '');
        end if;
        return null;
    end if;
    select g.xid into latest from gone g where pg_visible_in_snapshot(g.xid, present) order by g.xid desc limit 1;
    if latest is not null then
        update roost.meta m set pruned_xid = greatest(m.pruned_xid, latest), unpruned = array(
            select x from (select unnest(m.unpruned) union select pg_snapshot_xip(present)) running (x)
            where x < greatest(m.pruned_xid, latest) and not exists (select from gone g where g.xid = x)
            order by x)
        where m.pruned_xid is null or m.pruned_xid < latest
            or exists (select from gone g where g.xid = any (m.unpruned));
    end if;
    return null;
end
$$;
revoke execute on function roost.on_gone() from public;
create trigger gone after delete on roost.change referencing old table as gone
    for each statement execute function roost.on_gone();
create trigger emptied after truncate on roost.change for each statement execute function roost.on_gone();

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant select, insert, update, delete on roost.epoch to %s', hub::regrole);
        execute format('grant select, insert on roost.run to %s', hub::regrole);
        execute format('grant update (pruned_xid, unpruned) on roost.meta to %s', hub::regrole);
    end loop;
end
$$;
