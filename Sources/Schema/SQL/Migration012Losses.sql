-- What could be lost without a word: who is on no list, and what went from the outbox before a hub had read it.
--
-- Invariants
--   * A claim that roost.session lists everybody (a row of session_list) is for a turn, and counts only while that is the
--     turn of the hub's row in cursor. Before a join is answered that is not on the list, the feed moves that turn on, by a
--     statement of its own on its own connection. So the list does not count from then on, even where it cannot be
--     written, as because of a lock, a right or the room. A hub that can write neither refuses the join.
--   * A claim is for a turn that was read before the list was found complete, and a turn never comes again: a statement
--     that a dead connection left behind and that runs late makes no list count.
--   * Of change, whatever is deleted is noted in the deleting transaction (Migration010Epochs.sql), now also what TRUNCATE
--     takes: meta.pruned_xid is at least the highest transaction of which a row was there, no longer merely the highest of
--     all. So a hub tells whether anything went that it had not read: a transaction up to pruned_xid, and not in unpruned,
--     that was not finished where its window began. A transaction that wrote nothing, was running where the window began,
--     and lies below pruned_xid, is taken for one that did.
--   * Whoever deletes changes of the last minute leaves a row of the operation 'X', so that hubs look in that very window;
--     else they look twice a second, which is soon enough for what nobody deletes before it is old.
--   * Where no trigger runs (session_replication_role = replica, ALTER TABLE ... DISABLE TRIGGER), the file of the table
--     tells a hub that is connected that it was emptied or written anew, and the second where a change is still there that
--     the hub saw in it. Where it had seen none, it takes a table that was emptied for one that was written anew: rather a
--     loss that is not told than everybody's reload by VACUUM FULL. What DELETE takes without a trigger nobody notices.
--     The sequence of the ids cannot tell: transactions that were rolled back take numbers, too.
--   * That counts also for what a transaction deletes of its own changes, which nobody else ever saw.
--   * An old snapshot does not show what TRUNCATE takes, so it is only for READ COMMITTED.
-- Lock order: as in Migration010Epochs.sql.
-- Locks: ACCESS EXCLUSIVE on cursor and session_list for a moment; SHARE ROW EXCLUSIVE on change for the triggers.

alter table roost.cursor add list_turn bigint not null default 0;
comment on column roost.cursor.list_turn is 'Which claims of session_list count. It moves on when somebody is left out.';
alter table roost.session_list add turn bigint not null default 0;
comment on column roost.session_list.turn is 'The list counts while this is cursor.list_turn.';

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
revoke execute on function roost.tell_of_deletion() from public;
comment on column roost.change.op is
    'Insert, Update, Delete, Message (of realtime.messages), Truncate; X: young rows of this table were deleted; '
    'Lost: a change that could not be recorded.';

create or replace function roost.on_gone() returns trigger
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
revoke execute on function roost.on_emptying() from public;

create function roost.on_emptied() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform roost.tell_of_deletion();
    return null;
end
$$;
revoke execute on function roost.on_emptied() from public;

drop trigger emptied on roost.change;
create trigger emptying before truncate on roost.change for each statement execute function roost.on_emptying();
create trigger emptied after truncate on roost.change for each statement execute function roost.on_emptied();

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant update on roost.session_list to %s', hub::regrole);
    end loop;
end
$$;
