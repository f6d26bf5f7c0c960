-- Which tables are watched, whichever way their changes are captured, and whether their capture was interrupted.
--
-- Invariants
--   * A table is watched if roost's triggers are on it, or if it is in the publication `roost`, which a hub reads from the
--     WAL (Migration014Capture.sql); there is no third list that could disagree.
--   * A partition counts as its root: it has triggers of its own, and is published with its root.
--   * by_triggers where any trigger of roost's on it writes rows down and fires; by_wal where it is published by name. The
--     publication of all tables, or of a schema, makes nothing watched: it would publish the outbox, too.
--   * captured has what every table and partition was captured by when a hub last looked. It differs from capture_mark where
--     somebody disabled triggers, dropped them, made the table or the publication anew, narrowed it, or watched again what had
--     been unwatched, be it that all was put right since: changes may be missing. Whoever sees that notes it
--     (note_captures), as for changes that were deleted before they were read (Migration012Losses.sql).
--   * `roost watch` changes a table over without a gap, and says so in the same transaction (keep_captures).
--   * What is seen for the first time was not captured before, so nobody was promised anything; but where a table of its name
--     was, it is that one's heir.
--   * A server or database that captured does not name (another copy, an upgrade) begins anew: its triggers have other
--     numbers, and of a restore cursors tell.
-- Lock order: captured; then as in Migration014Capture.sql.
-- Locks: SHARE ROW EXCLUSIVE on captured where there is news; none else beyond those of reading the catalog.

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

-- What captures a table or partition now: a text that differs wherever that was changed, and whether every change is
-- captured. No row where nothing is.
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
           select from stored o where o.schema = p.schema and o.name = p.name) as is_interrupted
from present p full join stored s on s.relid = p.relid cross join here
where s.mark is distinct from coalesce(p.mark, '')
    and (p.relid is not null or exists (select from pg_class c where c.oid = s.relid));

-- Notes where a capture was interrupted: whoever may lack changes is told. Returns those tables' names.
create function roost.note_captures() returns setof text
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    interrupted text[];
    own xid8;
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
    own := pg_current_xact_id();
    update roost.meta set pruned_xid = own, unpruned = array(
        select x from pg_snapshot_xip(pg_current_snapshot()) x where x < own order by x);
    perform roost.tell_of_deletion();
    return query select unnest(interrupted);
end
$$;

-- What captures a table and its partitions was changed in this transaction by `roost watch`, without a gap: nothing is
-- missing, if nothing was before. With `released`, that nobody is to miss it from here on.
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
    update roost.captured c set mark = m.mark, is_whole = m.is_whole
    from roost.capture_mark m where m.relid = c.relid and c.is_whole and c.relid = any (members);
    delete from roost.captured c
    where c.is_whole and c.relid = any (members) and not exists (select from roost.capture_mark m where m.relid = c.relid);
end
$$;

-- They tell nothing that the catalog does not tell everybody; whoever may not use the schema may not use these.
grant select on roost.watched, roost.captured, roost.capture_mark, roost.capture_news to public;
grant execute on function roost.slot_name(), roost.note_captures(), roost.legible(json) to public;
