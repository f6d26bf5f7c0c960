-- A capture that was interrupted while nobody read the WAL: what the WAL still has from before is stored, and sent, after clients
-- were told of the interruption and loaded their data. It is older than that, so they are told once more when it is stored.
--
-- Invariants
--   * meta.unread_lsn is where the WAL ended when an interruption was noted (note_captures) of which much was unread: no hub read
--     it, or the one that did was far behind. One that follows has stored the rest before any client that is told has come back.
--     A new slot has nothing from before, so begin_capture clears it.
--   * A partition that gets its triggers later than its root, and has been written to by then, may have been written to by its own
--     name: that is an interruption. Whether it was cannot be seen, only that its file is not empty. So `roost watch` gives the
--     root its triggers last, and where a whole table leaves the WAL, which had its partitions' changes, says so (keep_partitions).
--   * The hub that leads calls settle_captures every few seconds. Once all up to there is stored, what it stored since counts as
--     what may be gone: whoever is told loads what came before, and is sent what came behind.
-- Lock order: as in Migration016Watched.sql.
-- Locks: ACCESS EXCLUSIVE on roost.meta for a moment.

alter table roost.meta add unread_lsn pg_lsn;
comment on column roost.meta.unread_lsn is
    'Up to here the WAL was unread when a capture was found to be interrupted; null: nothing was, or it is stored by now.';

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
revoke all on function roost.note_loss() from public;

create or replace view roost.capture_news as
with here as (
    select s.system_identifier || '.' || d.oid as place
    from pg_control_system() s, pg_database d where d.datname = current_database()
), stored as (
    select c.* from roost.captured c join here using (place)
), present as (
    select m.relid, m.mark, m.is_whole, n.nspname as schema, c.relname as name
    from roost.capture_mark m join pg_class c on c.oid = m.relid join pg_namespace n on n.oid = c.relnamespace
)
select coalesce(p.relid, s.relid) as relid, here.place, coalesce(p.schema, s.schema) as schema, coalesce(p.name, s.name) as name,
       coalesce(p.mark, '') as mark, coalesce(p.is_whole, false) as is_whole,
       s.relid is not null or exists (
           select from stored o where o.schema = p.schema and o.name = p.name)
       or pg_relation_size(p.relid) > 0 and exists (
           select from stored o
           where o.relid = pg_partition_root(p.relid)::oid and o.relid <> p.relid and o.mark <> '') as is_interrupted
from present p full join stored s on s.relid = p.relid cross join here
where s.mark is distinct from coalesce(p.mark, '')
    and (p.relid is not null or exists (select from pg_class c where c.oid = s.relid));

create or replace function roost.note_captures() returns setof text
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    interrupted text[];
begin
    if not exists (select from roost.capture_news) then
        return;
    end if;
    lock table roost.captured in share row exclusive mode;
    select array_agg(format('%I.%I', schema, name) order by schema, name) filter (where is_interrupted)
    into interrupted from roost.capture_news;
    insert into roost.captured as c (relid, place, schema, name, mark, is_whole)
    select relid, place, schema, name, mark, is_whole from roost.capture_news
    on conflict (relid) do update
    set place = excluded.place, mark = excluded.mark, is_whole = excluded.is_whole,
        schema = case when c.mark = '' or c.place <> excluded.place then excluded.schema else c.schema end,
        name = case when c.mark = '' or c.place <> excluded.place then excluded.name else c.name end,
        is_released = c.is_released and excluded.mark = '';
    if interrupted is null then
        return;
    end if;
    perform roost.note_loss();
    update roost.meta set unread_lsn = pg_current_wal_insert_lsn()
    where exists (
        select from pg_replication_slots s
        where s.slot_name = roost.slot_name()
            and (not s.active or pg_current_wal_insert_lsn() - s.confirmed_flush_lsn > 16 * 1024 * 1024));
    return query select unnest(interrupted);
end
$$;

-- To be called by the hub that reads the WAL: has everybody told again, once all is stored that was unread when an interruption
-- was noted. Returns whether it was so.
create function roost.settle_captures() returns boolean
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    update roost.meta m set unread_lsn = null
    from pg_replication_slots s
    where m.unread_lsn is not null and s.slot_name = roost.slot_name() and s.confirmed_flush_lsn >= m.unread_lsn;
    if not found then
        return false;
    end if;
    perform roost.note_loss();
    return true;
end
$$;

-- As in Migration014Capture.sql. What the slot before had unread is lost with it, and a number that came with a dump is of another
-- server.
create or replace function roost.begin_capture(place pg_lsn) returns boolean
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    known name;
begin
    select slot into known from roost.capture for update;
    update roost.meta set unread_lsn = null where unread_lsn is not null;
    if known is distinct from roost.slot_name() then
        -- The first one; another name came with a dump, whose cursors count for nothing here.
        insert into roost.capture (slot, lsn) values (roost.slot_name(), place)
        on conflict (singleton) do update
        set slot = excluded.slot, lsn = excluded.lsn, partial_lsn = null, partial_rows = 0, stored_at = clock_timestamp();
        return false;
    end if;
    update roost.capture set lsn = place, partial_lsn = null, partial_rows = 0, stored_at = clock_timestamp();
    -- This transaction is the one of which a change is gone.
    perform roost.note_loss();
    return true;
end
$$;

-- A published table left the publication in this transaction, and it and its partitions got triggers: what was written to a
-- partition by its own name was in the WAL until then, so nothing is missing. To be called behind keep_captures.
create function roost.keep_partitions(root oid) returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    insert into roost.captured as c (relid, place, schema, name, mark, is_whole)
    select n.relid, n.place, n.schema, n.name, n.mark, n.is_whole
    from roost.capture_news n
    where n.mark <> '' and n.relid in (select t.relid::oid from pg_partition_tree(root) t where t.level > 0)
        and exists (
            select from roost.captured r join roost.capture_mark m on m.relid = r.relid
            where r.relid = root and r.place = n.place and r.is_whole and r.mark = m.mark)
    on conflict (relid) do update
    set place = excluded.place, schema = excluded.schema, name = excluded.name, mark = excluded.mark, is_whole = excluded.is_whole
    where c.place <> excluded.place;
end
$$;

-- As with note_captures: a hub's role need not be the owner, and default privileges may give it nothing.
grant execute on function roost.settle_captures() to public;
