-- The questions of `roost doctor` about reading tables from the WAL (SchemaCapture.sql).
-- Locks: none.

-- name: CaptureSettings
-- The settings that reading the WAL depends on: wal_level; whether this role may replicate (some providers grant that
-- by a role of their own); replication slots and walsenders, the limit and the number in use; the bytes of WAL that a
-- slot may keep (-1: any number, null if the server has no such setting); whether a standby follows.
-- Locks: none.
select current_setting('wal_level'),
       r.rolreplication or r.rolsuper or exists (
           select from pg_roles g where g.rolname = 'rds_replication' and pg_has_role(r.oid, g.oid, 'member')),
       quote_ident(r.rolname),
       current_setting('max_replication_slots')::int, (select count(*) from pg_replication_slots),
       current_setting('max_wal_senders')::int, (select count(*) from pg_stat_replication),
       case when kept like '-%' then -1 else pg_size_bytes(kept) end,
       exists (
           select from pg_stat_replication s
           where not exists (select from pg_replication_slots l where l.active_pid = s.pid and l.slot_type = 'logical'))
from pg_roles r, current_setting('max_slot_wal_keep_size', true) kept
where r.rolname = current_user

-- name: CaptureSlot
-- The slot of this database, no row if there is none: its name; whether it is of pgoutput and of this database; whether
-- it can be read (not lost); whether it is being read; the bytes of WAL that it keeps, and those that are not stored
-- yet; whether it is synchronized to standbys (null before Postgres 17).
-- Columns that some versions lack are read through to_jsonb.
-- Locks: none.
select s.slot_name, s.plugin is not distinct from 'pgoutput' and s.database is not distinct from current_database(),
       s.wal_status is distinct from 'lost' and to_jsonb(s) ->> 'invalidation_reason' is null, s.active,
       (pg_current_wal_lsn() - s.restart_lsn)::bigint, (pg_current_wal_lsn() - s.confirmed_flush_lsn)::bigint,
       to_jsonb(s) ->> 'failover'
from pg_replication_slots s where s.slot_name = roost.slot_name()

-- name: SlotsLeft
-- Roost's slots that belong to no database of their name: left by a copy of a server, or by hand.
-- Locks: none.
select s.slot_name, quote_literal(s.slot_name) from pg_replication_slots s
where s.slot_name ~ '^roost_[0-9]+$' and not s.active
  and not exists (select from pg_database d where 'roost_' || d.oid = s.slot_name and d.datname = s.database)
order by 1

-- name: PublishedFaults
-- The faults of published tables: the table, and the fault's name.
--
-- Faults
--   * identity: the table or a partition has no replica identity, so Postgres refuses its UPDATEs and DELETEs.
--   * partial: it is published with a row filter or a column list.
--   * partition: it is a partition whose root is not published.
--   * unlogged: the table or a partition is unlogged, so its changes are not in the WAL.
-- Locks: none.
with published as (
    select c.oid, c.relispartition, to_jsonb(r) as entry
    from pg_publication p
    join pg_publication_rel r on r.prpubid = p.oid
    join pg_class c on c.oid = r.prrelid
    where p.pubname = 'roost'
), fault (oid, name) as (
    select p.oid, 'partial' from published p where p.entry ->> 'prqual' is not null or p.entry ->> 'prattrs' is not null
    union
    select p.oid, 'partition' from published p
    where p.relispartition and pg_partition_root(p.oid) not in (select oid from published)
    union
    select p.oid, 'unlogged'
    from published p
    cross join lateral (select relid::oid as oid from pg_partition_tree(p.oid) union select p.oid) m
    join pg_class c on c.oid = m.oid and c.relpersistence = 'u'
    union
    select p.oid, 'identity'
    from published p
    cross join lateral (select relid::oid as oid from pg_partition_tree(p.oid) union select p.oid) m
    join pg_class c on c.oid = m.oid
    where c.relkind = 'r' and not case c.relreplident
        when 'f' then true
        when 'd' then exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indisvalid)
        when 'i' then exists (select from pg_index i where i.indrelid = c.oid and i.indisreplident and i.indisvalid)
        else false
    end
)
select format('%I.%I', n.nspname, c.relname), f.name
from fault f join pg_class c on c.oid = f.oid join pg_namespace n on n.oid = c.relnamespace
order by 1, 2

-- name: UnjudgedDeletions
-- Tables with row level security, read from the WAL, whose deleted rows lack columns there ($1, an oid: this table
-- alone; null for all), and whether their key is a surrogate (roost.is_surrogate).
-- Locks: none.
select format('%I.%I', n.nspname, c.relname), coalesce((
    select i.indnkeyatts = 1 and roost.is_surrogate(i.indrelid, i.indkey[0])
    from pg_index i where i.indrelid = c.oid and i.indisprimary), false)
from roost.watched w
join pg_class c on c.oid = w.oid
join pg_namespace n on n.oid = c.relnamespace
where w.by_wal and c.relrowsecurity and ($1::oid is null or c.oid = $1::oid) and exists (
    select from (select relid::oid as oid from pg_partition_tree(c.oid) union select c.oid) m join pg_class p on p.oid = m.oid
    where p.relkind = 'r' and p.relreplident <> 'f' and exists (
        select from pg_attribute a
        where a.attrelid = p.oid and a.attnum > 0 and not a.attisdropped and not exists (
            select from pg_index i
            where i.indrelid = p.oid and case p.relreplident when 'd' then i.indisprimary else i.indisreplident end
                and a.attnum = any (i.indkey)
        )
    )
)
order by 1

-- name: CaptureRights
-- The rights needed to store rows from the WAL that this session's role lacks, one per row.
-- Locks: none.
select what from (values
    ('INSERT on roost.change', has_table_privilege('roost.change', 'insert')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.capture',
        has_table_privilege('roost.capture', 'select') and has_table_privilege('roost.capture', 'insert')
        and has_table_privilege('roost.capture', 'update') and has_table_privilege('roost.capture', 'delete')),
    ('EXECUTE on the functions of the schema roost', (
        select bool_and(has_function_privilege(p.oid, 'execute')) from pg_proc p
        where p.pronamespace = 'roost'::regnamespace
          and p.proname in (
              'begin_capture', 'store_begins', 'store_ends', 'text_as_json', 'reduced', 'row_text', 'text_need')))
) rights (what, granted)
where not granted
