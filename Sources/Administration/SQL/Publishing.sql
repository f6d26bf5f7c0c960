-- `roost watch` and `roost unwatch` for tables that are read from the WAL: the publication `roost`, and its slot
-- (Migration014Capture.sql).
-- Lock order: advisory lock (1919905648, 0) for whoever makes or drops the slot; the table, root before partitions; the
-- publication.

-- name: RequirementsOfWAL
-- What reading the WAL needs of the server and of this role: wal_level; whether the role may replicate (some providers
-- grant that by a role of their own); the slot's name; whether there is such a slot of another plugin or database;
-- replication slots that are free; whether this role may make a publication; its name.
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
-- The publication `roost`, no row where there is none: whether it publishes every operation, partitions as their root, and
-- from Postgres 18 on generated columns;
-- whether it publishes tables that it does not name, as one of all tables or of a schema does; and how many it names.
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
-- From 18 on generated columns have to be published: else Postgres refuses UPDATE and DELETE of a table that has some and
-- REPLICA IDENTITY FULL.
-- Locks: none that anybody waits for.
do $$
begin
    execute 'create publication roost with (publish = ''insert, update, delete, truncate'', publish_via_partition_root = true'
        || case when current_setting('server_version_num')::int >= 180000 then ', publish_generated_columns = stored' else '' end
        || ')';
end
$$

-- name: MendPublication
-- Makes what is there publish all that happens, and partitions as their root.
-- Locks: none that anybody waits for.
do $$
begin
    execute 'alter publication roost set (publish = ''insert, update, delete, truncate'', publish_via_partition_root = true'
        || case when current_setting('server_version_num')::int >= 180000 then ', publish_generated_columns = stored' else '' end
        || ')';
end
$$

-- name: MakeSlot
-- Takes until all transactions that write, in whatever database of the server, have ended: it waits for each one's id, under
-- lock_timeout. A slot that was not finished goes with the statement.
-- Locks: none that anybody waits for; ShareLock on the ids of transactions.
select lsn from pg_create_logical_replication_slot(roost.slot_name(), 'pgoutput')

-- name: SlotReader
-- Whether the slot is there to be read, whether somebody reads it, and how many bytes are not stored yet; no row where it is
-- gone.
-- Locks: none.
select s.wal_status is distinct from 'lost' and to_jsonb(s) ->> 'invalidation_reason' is null, s.active,
       (pg_current_wal_lsn() - s.confirmed_flush_lsn)::bigint
from pg_replication_slots s where s.slot_name = roost.slot_name()

-- name: IsStored
-- Whether all that was committed before a place in the WAL ($1) is stored in roost.change: a slot that is gone has nothing.
-- Locks: none.
select not exists (
    select from pg_replication_slots s where s.slot_name = roost.slot_name() and s.confirmed_flush_lsn < $1::pg_lsn)

-- name: PushWAL
-- Commits something, so that the WAL before it is written out, which is all that a walsender may read.
-- Locks: none.
select pg_logical_emit_message(true, 'roost', '')

-- name: TableMembership
-- Whether a table ($1, an oid) is in the publication, whether it is unlogged, itself or a partition, and the first table that it
-- inherits from or that inherits from it, other than as a partition.
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
-- The statements that put a table ($1, an oid) into the publication and take roost's triggers off, to be run in one
-- transaction: who wrote before it is in the outbox by triggers, or not at all, and who writes after it is in the WAL.
-- Each with the member that it concerns, and whether it gives it a replica identity: without one Postgres refuses UPDATE and
-- DELETE once the table is published, as the WAL would not tell which row it was. Partitions have identities of their own.
-- The lock comes first and is as strong as any that follows. Without it a transaction that wrote to the table before, and is
-- still going on, could have the walsender take the table for one that is not published, on servers from before May 2025.
-- Locks (of the statements): ShareRowExclusive on the table and its partitions; AccessExclusive where triggers are dropped or a
-- replica identity is set.
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
-- The statement that takes a table ($1, an oid) out of the publication; no row where it is not in it.
-- Locks (of the statement): ShareUpdateExclusive on the table.
select format('alter publication roost drop table only %I.%I', n.nspname, c.relname)
from pg_publication p
join pg_publication_rel r on r.prpubid = p.oid
join pg_class c on c.oid = r.prrelid
join pg_namespace n on n.oid = c.relnamespace
where p.pubname = 'roost' and c.oid = $1::oid
