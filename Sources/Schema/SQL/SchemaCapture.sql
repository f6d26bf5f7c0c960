-- Which tables are watched, whichever way their changes are captured; rows read from the WAL; and whether a capture was interrupted.
--
-- With `feed.capture: wal` tables have no triggers. One hub, the leader, reads the changes of the publication `roost` from a logical slot
-- and writes them into roost.change, in batches; readers of the outbox know nothing of it.
--
-- Invariants of storing
--   * capture.lsn moves in the transaction that stores the rows, and from nothing but the place the writer knew (store_begins): of two
--     leaders, one fails. The slot is told only what is committed here. So every row is stored once, whichever process is killed at
--     whatever moment.
--   * All transactions whose commit lies before capture.lsn are stored. Of the one whose commit is at partial_lsn the first partial_rows
--     changes are stored, too: a large transaction is stored in pieces. Postgres decodes a transaction to the same changes each time.
--   * capture.lsn is null while the slot is gone and no other is there: what commits then is read by nobody. Whoever makes the next slot
--     notes that (begin_capture), as for changes that were deleted before they were read (SchemaRecovery.sql): clients are told.
--   * change.lsn is the commit of the transaction that changed the row, and change.at the time of that commit; of rows that triggers wrote
--     lsn is null. change.xid is the storing transaction's, so that windows, cursors and pruning are the same for both.
--   * A change is stored when everybody sees what it changed. A commit is in the WAL, and read from there, before that: by microseconds,
--     or by as long as a synchronous standby takes. Policies that judge the row would not see what its own transaction wrote elsewhere,
--     and a client that reads it again would not find it.
--   * The ids of a batch are drawn when it begins, and lie in the order of the WAL.
-- Invariants of watching
--   * A table is watched if roost's triggers are on it, or if it is in the publication `roost`; there is no third list that could
--     disagree. A partition counts as its root: it has triggers of its own, and is published with its root.
--   * by_triggers where any trigger of roost's on it writes rows down and fires; by_wal where it is published by name. The publication of
--     all tables, or of a schema, makes nothing watched: it would publish the outbox, too.
--   * captured has what every table and partition was captured by when a hub last looked. It differs from capture_mark where somebody
--     disabled triggers, dropped them, made the table or the publication anew, narrowed it, or watched again what had been unwatched, be it
--     that all was put right since: changes may be missing. Whoever sees that notes it (note_captures), as for changes that were deleted
--     before they were read.
--   * `roost watch` changes a table over without a gap, and says so in the same transaction (keep_captures).
--   * A table that is seen for the first time was not captured before, so nobody was promised anything; but where a table of its name
--     was, it is that one's heir.
--   * A server or database that captured does not name (another copy, an upgrade) begins anew: its triggers have other numbers, and of a
--     restore cursors tell.
--   * A partition that gets its triggers later than its root, and has been written to by then, may have been written to by its own name:
--     that is an interruption. Whether it was cannot be seen, only that its file is not empty. So `roost watch` gives the root its
--     triggers last, and where a whole table leaves the WAL, which had its partitions' changes, says so (keep_partitions).
--   * meta.unread_lsn is where the WAL ended when an interruption was noted of which much was unread: no hub read it, or the one that did
--     was far behind. What the WAL still has from before is older than the clients' reload, so they are told once more when it is stored:
--     the hub that leads calls settle_captures every few seconds. One that follows has stored the rest before any client that is told has
--     come back. A new slot has nothing from before, so begin_capture clears it.
-- Lock order: captured; advisory lock (1919905648, 0) for whoever makes or drops the slot; rows of roost.change; the row of roost.capture;
-- the row of roost.meta.
-- Locks: SHARE ROW EXCLUSIVE on captured where there is news; none else beyond those of reading the catalog.

create table roost.capture (
    singleton boolean primary key default true check (singleton),
    slot name not null,
    lsn pg_lsn,
    partial_lsn pg_lsn,
    partial_rows bigint not null default 0,
    stored_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table roost.capture is 'How far the changes of the publication roost are stored in roost.change.';

-- The name of the logical slot: slots belong to the server, so it names the database.
create function roost.slot_name() returns name language sql stable as $$
    select ('roost_' || oid)::name from pg_catalog.pg_database where datname operator(pg_catalog.=) current_database()
$$;

-- A slot begins at `place`: what commits later will be read. Where another slot was read before, everybody is told that changes are
-- missing: what that slot had unread is lost with it, and a number that came with a dump is of another server. To be called as soon as a
-- slot was made, and where one is found that nobody has read. Returns whether changes are missing.
create function roost.begin_capture(place pg_lsn) returns boolean
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

-- Begins the transaction that stores a batch: moves the place from where it was to where it will be, and draws as many ids as there are
-- rows, which the statements of the batch find in the setting roost.ids. `writers` are the transactions that changed the rows, without
-- their epochs.
create function roost.store_begins(
    was pg_lsn, was_partial pg_lsn, was_rows bigint, now pg_lsn, now_partial pg_lsn, now_rows bigint, rows integer,
    writers bigint[]
) returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    present pg_snapshot;
    newest bigint;
begin
    loop
        present := pg_current_snapshot();
        newest := pg_snapshot_xmax(present)::text::bigint;
        -- Of the ids that end like this, the one that is nearest: the others are two billion transactions away.
        exit when not exists (
            select from unnest(writers) w cross join lateral (select w - newest % 4294967296 as ahead) a
            where not pg_visible_in_snapshot((newest + ahead + case
                when ahead > 2147483648 then -4294967296 when ahead < -2147483648 then 4294967296 else 0 end
            )::text::xid8, present)
        );
        perform pg_sleep(0.0005);
    end loop;
    update roost.capture c
    set lsn = now, partial_lsn = now_partial, partial_rows = now_rows, stored_at = clock_timestamp()
    where c.lsn = was and c.partial_lsn is not distinct from was_partial and c.partial_rows = was_rows;
    if not found then
        raise exception 'roost: another hub stores the changes that are read from the WAL' using errcode = 'RS001';
    end if;
    perform set_config('roost.ids', coalesce((
        select array_agg(nextval('roost.change_id_seq'))::text from generate_series(1, rows)), '{}'), true);
    -- For the statements that follow: a value whose JSON takes without end is an error of its row.
    perform set_config('statement_timeout', '15s', true);
end
$$;

-- Ends it: hubs that sleep are rung for, once.
create function roost.store_ends() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    if roost.must_ring() and roost.may_notify() then
        perform pg_notify('roost', '');
    end if;
end
$$;

create view roost.watched as
with found (oid, by_triggers) as (
    select t.tgrelid, true
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and t.tgenabled <> 'D' and p.pronamespace = 'roost'::regnamespace
      and p.proname in ('on_insert', 'on_update', 'on_delete')
    union all
    select r.prrelid, false
    from pg_publication_rel r join pg_publication p on p.oid = r.prpubid
    where p.pubname = 'roost'
)
select c.oid, bool_or(f.by_triggers) as by_triggers, bool_or(not f.by_triggers) as by_wal
from found f join pg_class c on c.oid = f.oid
where not c.relispartition
group by c.oid;
comment on view roost.watched is 'The watched tables (oid), and whether triggers or the WAL tell of their changes.';

create table roost.captured (
    relid oid primary key,
    place text not null,
    schema name not null,
    name name not null,
    mark text not null,
    is_whole boolean not null,
    is_released boolean not null default false
);
comment on table roost.captured is 'What watched tables and partitions were captured by when a hub last looked.';
comment on column roost.captured.place is 'The server and the database that relid and mark are of.';
comment on column roost.captured.name is 'As it was called when it was first seen, so that a table put in its place is noticed.';
comment on column roost.captured.mark is 'As capture_mark has it; empty where nothing captured it.';
comment on column roost.captured.is_released is 'roost unwatch took it out, so nobody is to miss it.';

-- What captures a table or partition now: a text that differs wherever that was changed, and whether every change is captured. No row
-- where nothing is.
create view roost.capture_mark as
with routine as materialized (
    select p.oid, p.proname, md5(p.prosrc) as text from pg_proc p
    where p.pronamespace = 'roost'::regnamespace and p.proname in ('on_insert', 'on_update', 'on_delete')
), part (relid, text, operation) as (
    select t.tgrelid, concat_ws(':', t.oid, t.xmin, t.tgenabled, p.text), case when t.tgenabled in ('O', 'A') then p.proname end
    from pg_trigger t join routine p on p.oid = t.tgfoid
    where not t.tgisinternal
    union all
    select r.prrelid, concat_ws(':', p.oid, p.xmin, r.oid, r.xmin, unlogged.count), case
        when p.pubinsert and p.pubupdate and p.pubdelete and p.pubviaroot and unlogged.count = 0
            and to_jsonb(r) ->> 'prqual' is null and to_jsonb(r) ->> 'prattrs' is null then 'all'
    end
    from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
    cross join lateral (
        select count(*) from (select relid::oid as oid from pg_partition_tree(r.prrelid) union select r.prrelid) m
        join pg_class c using (oid) where c.relpersistence = 'u'
    ) unlogged
    where p.pubname = 'roost'
)
select relid, string_agg(text, ',' order by text) as mark,
       count(distinct operation) filter (where operation <> 'all') = 3 or coalesce(bool_or(operation = 'all'), false) as is_whole,
       coalesce(bool_or(operation = 'all'), false) as is_published
from part group by relid having count(operation) > 0;

-- Where captured does not say what capture_mark does.
create view roost.capture_news as
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

-- Has text_need say what the columns of the watched tables are now. To be called whenever one may have been altered.
-- Locks: advisory lock (1919905650, 1), where there is news.
create function roost.refresh_text_needs() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    body text;
begin
    for attempt in 1..2 loop
        with columns as materialized (
            select distinct a.attrelid as relid, a.atttypid as type from roost.watched w
            join pg_attribute a on a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
        ), forms as materialized (
            select type, roost.value_form(type) as form from (select distinct type from columns) types
        )
        select 'select ' || coalesce(
            'case ' || string_agg(format('when $1 operator(pg_catalog.=) any (''%s''::pg_catalog.oid[]) then %s',
                tables, need), ' ' order by need) || ' else 0 end', '0')
        into body
        from (
            select need, array_agg(oid order by oid) as tables
            from (
                select a.relid as oid, max(case f.form when 'names' then 4 when 'nested' then 3 when 'text' then 3
                    when 'bounds' then 2 when 'json' then 1 else 0 end) as need
                from columns a join forms f on f.type = a.type
                group by a.relid
            ) needs
            where need > 0 group by need
        ) grouped;
        if body = (select prosrc from pg_proc where oid = 'roost.text_need(oid)'::regprocedure) then
            return;
        end if;
        exit when attempt = 2;
        -- Somebody else may have written it while this waited.
        perform pg_advisory_xact_lock(1919905650, 1);
    end loop;
    execute 'create or replace function roost.text_need(watched oid) returns integer language sql stable as '
        || quote_literal(body);
end
$$;

-- Notes where a capture was interrupted: clients that may lack changes are told. Returns those tables' names.
create function roost.note_captures() returns setof text
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

-- To be called by the hub that reads the WAL: has everybody told again, once all is stored that was unread when an interruption was
-- noted. Returns whether it was so.
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

-- What captures a table and its partitions was changed in this transaction by `roost watch`, without a gap: nothing is missing, if
-- nothing was before, and what the table's rows need is known from its first change on. With `released`, that nobody is to miss it any
-- more.
create function roost.keep_captures(root oid, released boolean) returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    members oid[] := array(select relid::oid from pg_partition_tree(root) union select root);
begin
    if released then
        update roost.captured set is_released = true where relid = any (members);
        return;
    end if;
    perform roost.refresh_text_needs();
    update roost.captured c set mark = m.mark, is_whole = m.is_whole
    from roost.capture_mark m where m.relid = c.relid and c.is_whole and c.relid = any (members);
    delete from roost.captured c
    where c.is_whole and c.relid = any (members) and not exists (select from roost.capture_mark m where m.relid = c.relid);
end
$$;

-- A published table left the publication in this transaction, and it and its partitions got triggers: what was written to a partition by
-- its own name was in the WAL until then, so nothing is missing. To be called behind keep_captures.
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

revoke execute on function
    roost.begin_capture(pg_lsn), roost.store_begins(pg_lsn, pg_lsn, bigint, pg_lsn, pg_lsn, bigint, integer, bigint[]),
    roost.store_ends()
from public;
-- They tell nothing that the catalog does not tell everybody; who may not use the schema may not use these.
grant select on roost.watched, roost.captured, roost.capture_mark, roost.capture_news to public;
grant execute on function
    roost.slot_name(), roost.note_captures(), roost.settle_captures(), roost.refresh_text_needs() to public;
