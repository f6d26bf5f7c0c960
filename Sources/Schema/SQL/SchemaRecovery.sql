-- Which history of which database the outbox is part of, and what was really deleted from it.
--
-- A cursor means something only in the history of the database that it was made in. Dumps that were restored, data directories that were
-- put back and forks of a copy look the same from inside, and their transaction ids go on. So a hub writes an epoch, a row with a random
-- number, whenever it connects and every few seconds while changes flow, and its cursors carry that number: where the row is missing, the
-- cursor was made in a past that this database does not have.
--
-- Invariants
--   * epoch.born is the transaction that wrote the row, so its low half is the row's own xmin for as long as the row stands where it was
--     written. A row that a dump, COPY or logical replication wrote again has another xmin; copies of the files, pg_upgrade's too, keep
--     it, and so do VACUUM FULL and CLUSTER. Tools that write a table anew in place (pg_repack) do not, but the table keeps its oid and
--     the server its identifier, one of which a dump's copy has not. So no row is written in a subtransaction, none is updated but row 0,
--     which is mended after such a tool, and no migration may rewrite the table. Row 0 stays for ever: two rows that one COPY restored
--     cannot both fit by chance.
--   * epoch.seam is where the hub went on when it connected: its stored cursor, which is certainly part of the server's own history. Null
--     in rows that were written between two connects.
--   * epoch.run names one run of the server: from its start, and since its last crash, which empties the unlogged table run. Within a run
--     no transaction is forgotten, and nothing can have been put back.
--   * Of change, whatever is deleted, by whomever, TRUNCATE included, is noted in the deleting transaction: meta.pruned_xid is at least
--     the highest transaction of which a change is gone, and those in meta.unpruned, which are below it, were running then, so that none
--     of theirs is gone. So a hub tells whether anything went that it had not read: a transaction up to pruned_xid, and not in unpruned,
--     that was not finished where its window began. A transaction that wrote nothing, was running where the window began, and lies below
--     pruned_xid, is taken for one that did. Changes that claim a transaction which has not happened yet, as a restore brings them, do
--     not count; those that a transaction deletes of its own do, which nobody else ever saw.
--   * Whoever deletes changes of the last minute leaves a row of the operation 'X', so that hubs look in that very window; else they look
--     twice a second, which is soon enough for what nobody deletes before it is old.
--   * Where no trigger runs (session_replication_role = replica, ALTER TABLE ... DISABLE TRIGGER), the file of the table tells a hub that
--     is connected that it was emptied or written anew, and the second where a change is still there that the hub saw in it. Where it had
--     seen none, it takes a table that was emptied for one that was written anew: rather a loss that is not told than everybody's reload
--     by VACUUM FULL. What DELETE takes without a trigger nobody notices. The sequence of the ids cannot tell: transactions that were
--     rolled back take numbers, too.
--   * An old snapshot does not show what TRUNCATE takes, so it is only for READ COMMITTED.
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
comment on table roost.epoch is 'What the cursors of changes are tagged with; tells a restored database from the one before.';

-- The row that no hub wrote, and that is honoured if there was a hub.
insert into roost.epoch (id, node, timeline, system_identifier, relation)
select 0, '', (select max(timeline) from roost.cursor), system_identifier, 'roost.epoch'::regclass
from pg_control_system();

create unlogged table roost.run (
    singleton boolean primary key default true check (singleton),
    id bigint not null
);
comment on table roost.run is 'One run of the server: it is empty after a crash, and made anew.';

create function roost.tell_of_deletion() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    insert into roost.change (relid, op) values ('roost.change'::regclass, 'X');
    if roost.must_ring() then
        perform pg_notify('roost', '');
    end if;
end
$$;

-- Of a transaction that is about to commit: whatever was committed before it may be gone. Everybody is told.
create function roost.note_loss() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    own xid8 := pg_current_xact_id();
begin
    update roost.meta set pruned_xid = own, unpruned = array(
        select x from pg_snapshot_xip(pg_current_snapshot()) x where x < own order by x);
    perform roost.tell_of_deletion();
end
$$;

create function roost.on_gone() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    own xid8 := pg_current_xact_id();
    present pg_snapshot := pg_current_snapshot();
    latest xid8;
begin
    select g.xid into latest from gone g
    where pg_visible_in_snapshot(g.xid, present) or g.xid = own order by g.xid desc limit 1;
    if latest is not null then
        update roost.meta m set pruned_xid = greatest(m.pruned_xid, latest), unpruned = array(
            select x from (select unnest(m.unpruned) union select pg_snapshot_xip(present)) running (x)
            where x < greatest(m.pruned_xid, latest) and not exists (select from gone g where g.xid = x)
            order by x)
        where m.pruned_xid is null or m.pruned_xid < latest
            or exists (select from gone g where g.xid = any (m.unpruned));
    end if;
    if exists (select from gone g where g.at > clock_timestamp() - interval '1 minute' and g.op <> 'X') then
        perform roost.tell_of_deletion();
    end if;
    return null;
end
$$;
create trigger gone after delete on roost.change referencing old table as gone
    for each statement execute function roost.on_gone();

create function roost.on_emptying() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    own xid8 := pg_current_xact_id();
    present pg_snapshot := pg_current_snapshot();
    latest xid8;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'TRUNCATE of % needs READ COMMITTED: an older snapshot does not show what it takes.', tg_relid::regclass
            using errcode = 'feature_not_supported';
    end if;
    select c.xid into latest from roost.change c
    where pg_visible_in_snapshot(c.xid, present) or c.xid = own order by c.xid desc limit 1;
    if latest is not null then
        update roost.meta m set pruned_xid = greatest(m.pruned_xid, latest), unpruned = array(
            select x from (select unnest(m.unpruned) union select pg_snapshot_xip(present)) running (x)
            where x < greatest(m.pruned_xid, latest) and not exists (select from roost.change c where c.xid = x)
            order by x);
    end if;
    return null;
end
$$;
create trigger emptying before truncate on roost.change for each statement execute function roost.on_emptying();

create function roost.on_emptied() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform roost.tell_of_deletion();
    return null;
end
$$;
create trigger emptied after truncate on roost.change for each statement execute function roost.on_emptied();

revoke execute on function
    roost.tell_of_deletion(), roost.note_loss(), roost.on_gone(), roost.on_emptying(), roost.on_emptied()
from public;
