-- `roost watch` and `roost unwatch` for tables that are read from the WAL: the publication `roost`, and its slot
-- (SchemaCapture.sql).
-- Lock order: advisory lock (1919905648, 0) to create or drop the slot; the table, root before partitions; the
-- publication.

-- name: RequirementsOfWAL
-- What reading the WAL requires of the server and of this role: wal_level; whether the role may replicate (some
-- providers grant that by a role of their own); the slot's name; whether a slot of that name exists for another plugin
-- or database; the number of free replication slots; whether this role may create a publication; its name.
-- Locks: none.
select current_setting('wal_level'),
       r.rolreplication or r.rolsuper or exists (
           select from pg_roles g where g.rolname = 'rds_replication' and pg_has_role(r.oid, g.oid, 'member')),
       roost.slot_name(),
       s.slot_name is not null and (s.plugin is distinct from 'pgoutput' or s.database is distinct from current_database()),
       current_setting('max_replication_slots')::int - (select count(*) from pg_replication_slots),
       has_database_privilege(current_database(), 'create'), quote_ident(r.rolname)
from pg_roles r left join pg_replication_slots s on s.slot_name = roost.slot_name()
where r.rolname = current_user

-- name: PublicationState
-- The publication `roost`, no row if there is none: whether it publishes every operation, partitions as their root, and
-- from Postgres 18 on generated columns; whether it publishes tables that it does not name, as one of all tables or of
-- a schema does; and the number of tables it names.
-- Locks: none.
select p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate and p.pubviaroot
           and to_jsonb(p) ->> 'pubgencols' is distinct from 'n',
       p.puballtables or exists (
           select from pg_publication_tables m
           join pg_namespace n on n.nspname = m.schemaname
           join pg_class c on c.relnamespace = n.oid and c.relname = m.tablename
           where m.pubname = p.pubname and not exists (
               select from pg_publication_rel r
               where r.prpubid = p.oid and r.prrelid in (c.oid, pg_partition_root(c.oid)))),
       (select count(*) from pg_publication_rel r where r.prpubid = p.oid)
from pg_publication p where p.pubname = 'roost'

-- name: MakePublication
-- From Postgres 18 on generated columns must be published: otherwise Postgres refuses UPDATE and DELETE on a table with
-- such columns and REPLICA IDENTITY FULL.
-- Locks: none that any session waits for.
do $$
begin
    execute 'create publication roost with (publish = ''insert, update, delete, truncate'', publish_via_partition_root = true'
        || case when current_setting('server_version_num')::int >= 180000 then ', publish_generated_columns = stored' else '' end
        || ')';
end
$$

-- name: MendPublication
-- Makes the existing publication publish every operation, and partitions as their root.
-- Locks: none that any session waits for.
do $$
begin
    execute 'alter publication roost set (publish = ''insert, update, delete, truncate'', publish_via_partition_root = true'
        || case when current_setting('server_version_num')::int >= 180000 then ', publish_generated_columns = stored' else '' end
        || ')';
end
$$

-- name: MakeSlot
-- Takes until all writing transactions, in any database of the server, have ended: it waits for each one's id, under
-- lock_timeout. An unfinished slot disappears with the statement.
-- Locks: none that any session waits for; ShareLock on the ids of transactions.
select lsn from pg_create_logical_replication_slot(roost.slot_name(), 'pgoutput')

-- name: SlotReader
-- Whether the slot can be read, whether it is being read, and the number of bytes that are not stored yet; no row if it
-- is gone.
-- Locks: none.
select s.wal_status is distinct from 'lost' and to_jsonb(s) ->> 'invalidation_reason' is null, s.active,
       (pg_current_wal_lsn() - s.confirmed_flush_lsn)::bigint
from pg_replication_slots s where s.slot_name = roost.slot_name()

-- name: IsStored
-- Whether everything committed before a position in the WAL ($1) is stored in roost.change; also true if the slot is
-- gone.
-- Locks: none.
select not exists (
    select from pg_replication_slots s where s.slot_name = roost.slot_name() and s.confirmed_flush_lsn < $1::pg_lsn)

-- name: PushWAL
-- Commits something, so that the WAL before it is flushed, because a walsender reads only flushed WAL.
-- Locks: none.
select pg_logical_emit_message(true, 'roost', '')

-- name: TableMembership
-- Whether a table ($1, an oid) is in the publication, whether it or a partition is unlogged, and the first table that
-- it inherits from or that inherits from it, other than as a partition.
-- Locks: none.
select exists (
           select from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
           where p.pubname = 'roost' and r.prrelid = $1::oid),
       exists (
           select from (select relid::oid as oid from pg_partition_tree($1::oid) union select $1::oid) m
           join pg_class c using (oid) where c.relpersistence = 'u'),
       (select format('%I.%I', n.nspname, c.relname)
        from pg_inherits i join pg_class h on h.oid = i.inhrelid
        join pg_class c on c.oid = case when i.inhrelid = $1::oid then i.inhparent else i.inhrelid end
        join pg_namespace n on n.oid = c.relnamespace
        where $1::oid in (i.inhrelid, i.inhparent) and not h.relispartition
        order by c.oid limit 1)

-- name: PublishTable
-- The statements that add a table ($1, an oid) to the publication and remove roost's triggers, to be run in one
-- transaction: earlier writes are in the outbox by triggers, or not at all, and later ones are in the WAL. Each comes
-- with the member that it concerns, and whether it sets a replica identity: without one Postgres refuses UPDATE and
-- DELETE once the table is published, because the WAL would not identify the row. Partitions have identities of their
-- own.
-- The lock comes first and is as strong as any that follows. Without it, on servers from before May 2025, an open
-- transaction that wrote to the table earlier could make the walsender treat the table as unpublished.
-- Locks (of the statements): ShareRowExclusive on the table and its partitions; AccessExclusive if triggers are dropped
-- or a replica identity is set.
with member as (
    select m.relid, m.level, format('%I.%I', n.nspname, c.relname) as name, c.relreplident, c.relkind
    from (select relid::oid as relid, level from pg_partition_tree($1::oid) union select $1::oid, 0) m
    join pg_class c on c.oid = m.relid
    join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'p')
), membership as (
    select to_jsonb(r) ->> 'prqual' is null and to_jsonb(r) ->> 'prattrs' is null as is_whole
    from pg_publication p join pg_publication_rel r on r.prpubid = p.oid
    where p.pubname = 'roost' and r.prrelid = $1::oid
), step (place, level, relid, statement) as (
    select 2, m.level, m.relid, format('alter table only %s replica identity full', m.name)
    from member m
    where not case m.relreplident
        when 'f' then true
        when 'd' then exists (select from pg_index i where i.indrelid = m.relid and i.indisprimary and i.indisvalid)
        when 'i' then exists (select from pg_index i where i.indrelid = m.relid and i.indisreplident and i.indisvalid)
        else false
    end
    union all
    select 3, m.level, m.relid, format('drop trigger %I on %s', t.tgname, m.name)
    from member m
    join pg_trigger t on t.tgrelid = m.relid and not t.tgisinternal
    join pg_proc p on p.oid = t.tgfoid
    where p.pronamespace = to_regnamespace('roost') and p.proname in ('on_insert', 'on_update', 'on_delete', 'on_truncate')
    union all
    select 4, 0, m.relid, format('alter publication roost drop table only %s', m.name)
    from member m join membership on not is_whole where m.relid = $1::oid
    union all
    select 5, 0, m.relid, format('alter publication roost add table only %s', m.name)
    from member m where m.relid = $1::oid and not exists (select from membership where is_whole)
)
select statement, relid::regclass::text, place = 2 from (
    select * from step
    union all
    select 1, 0, m.relid, format('lock table %s%s in %s mode', case m.relkind when 'r' then 'only ' end, m.name, (
        select case when min(s.place) < 4 then 'access exclusive' else 'share row exclusive' end from step s))
    from member m where m.relid = $1::oid and exists (select from step)
) steps
order by place, level, relid, statement

-- name: RetractTable
-- The statement that removes a table ($1, an oid) from the publication; no row if it is not in it.
-- Locks (of the statement): ShareUpdateExclusive on the table.
select format('alter publication roost drop table only %I.%I', n.nspname, c.relname)
from pg_publication p
join pg_publication_rel r on r.prpubid = p.oid
join pg_class c on c.oid = r.prrelid
join pg_namespace n on n.oid = c.relnamespace
where p.pubname = 'roost' and c.oid = $1::oid
