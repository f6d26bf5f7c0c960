-- Which tables are watched, whichever way their changes are captured.
--
-- Invariants
--   * A table is watched if roost's triggers are on it, or if it is in the publication `roost`, which a hub reads from the
--     WAL (Migration014Capture.sql); there is no third list that could disagree.
--   * A partition counts as its root: it has triggers of its own, and is published with its root.
--   * by_triggers where any trigger of roost's on it writes rows down and fires; by_wal where it is published by name. The
--     publication of all tables, or of a schema, makes nothing watched: it would publish the outbox, too.
-- Locks: none beyond those of reading the catalog.

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

-- They tell nothing that the catalog does not tell everybody; whoever may not use the schema may not use these.
grant select on roost.watched to public;
grant execute on function roost.slot_name() to public;
