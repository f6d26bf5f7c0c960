-- The questions of `roost doctor` to a database. Everything here only reads, and works for a role with few rights.
-- Locks: none.

-- name: Connections
-- The number of sessions that this role may still open under each limit, null if a limit does not apply to it:
-- max_connections without those reserved for superusers, the role's own, the database's. Also max_connections, and
-- whether a hub is connected, whose sessions are counted already.
-- pg_stat_activity hides what others do, but not that they are connected.
-- Locks: none.
select current_setting('max_connections')::int
           - case when r.rolsuper then 0 else current_setting('superuser_reserved_connections')::int
               -- From Postgres 16 on.
               + coalesce(current_setting('reserved_connections', true)::int, 0) end
           - (select sum(numbackends) from pg_stat_database)::int,
       case when r.rolconnlimit >= 0 and not r.rolsuper then r.rolconnlimit
           - (select count(*) from pg_stat_activity where usesysid = r.oid and datid is not null) end,
       case when d.datconnlimit >= 0 and not r.rolsuper then d.datconnlimit
           - (select numbackends from pg_stat_database s where s.datid = d.oid) end,
       current_setting('max_connections')::int,
       exists (select from pg_locks where locktype = 'advisory' and database = d.oid and classid = 1919905649)
from pg_roles r, pg_database d
where r.rolname = current_user and d.datname = current_database()

-- name: LongTransactions
-- Transactions that have been open for more than $1 seconds, oldest first: the owner, the start, and the statement that
-- ends it. A role that may not see others' sessions sees only its own.
-- Locks: none.
select who, to_char(since, 'YYYY-MM-DD HH24:MI:SS TZ'), remedy from (
    select format('Process %s (%s)', pid, concat_ws(', ', coalesce(nullif(application_name, ''), usename), state)),
           xact_start, format('select pg_terminate_backend(%s)', pid)
    from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()
    union all
    select format('The prepared transaction %L', gid), prepared, format('rollback prepared %L', gid)
    from pg_prepared_xacts where database = current_database()
) transactions (who, since, remedy)
where since < clock_timestamp() - make_interval(secs => $1::float8)
order by since

-- name: NotificationQueue
-- How full the queue of notifications is, and the session that may be holding it up: a session that listens reads its
-- notifications only between transactions. Listeners are not visible; the oldest transaction of the cluster is the
-- suspect.
-- Locks: none.
select pg_notification_queue_usage(),
       (select format('process %s (%s, in a transaction since %s)', pid,
            coalesce(nullif(application_name, ''), usename), to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
        from pg_stat_activity
        where backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()
        order by xact_start limit 1)

-- name: Standbys
-- The standbys that follow this server: the name, the bytes of WAL not yet replayed and the lag in seconds (null if
-- this role may not see them; the seconds also if nothing was written lately).
-- Locks: none.
select concat_ws(' at ', coalesce(nullif(application_name, ''), 'a standby'), host(client_addr)),
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::bigint, extract(epoch from replay_lag)::float8
from pg_stat_replication
where not pg_is_in_recovery() and state is distinct from 'backup'
order by 1

-- name: IdleSlots
-- Replication slots without a reader that keep more than $1 bytes of WAL, except roost's own of this database
-- (CaptureDoctor.sql).
-- Locks: none.
select slot_name, quote_literal(slot_name), pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint
from pg_replication_slots
where not pg_is_in_recovery() and not active and restart_lsn is not null
  and slot_name <> (select 'roost_' || oid from pg_database where datname = current_database())
  and pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > $1::bigint
order by 3 desc

-- name: Rights
-- The rights to roost's objects that this session's role lacks, one per row, and whether a hub without it does
-- everything except one thing that clients must ask for.
-- The rights it needs to realtime.messages depend on whether the table exists, and on its owner. A right that cannot be
-- checked is null and does not count as lacking.
-- Locks: none.
with messages as (
    select c.oid, owns_messages from roost.meta
    left join pg_namespace n on n.nspname = 'realtime'
    left join pg_class c on c.relnamespace = n.oid and c.relname = 'messages' and c.relkind in ('r', 'p')
)
select what, what like 'INSERT on realtime.messages %' from (values
    ('USAGE on schema roost', has_schema_privilege('roost', 'usage')),
    ('SELECT on roost.meta', has_table_privilege('roost.meta', 'select')),
    ('UPDATE (pruned_xid, unpruned) on roost.meta',
        has_column_privilege('roost.meta', 'pruned_xid', 'update')
        and has_column_privilege('roost.meta', 'unpruned', 'update')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.epoch',
        has_table_privilege('roost.epoch', 'select') and has_table_privilege('roost.epoch', 'insert')
        and has_table_privilege('roost.epoch', 'update') and has_table_privilege('roost.epoch', 'delete')),
    ('SELECT, INSERT on roost.run',
        has_table_privilege('roost.run', 'select') and has_table_privilege('roost.run', 'insert')),
    ('SELECT on roost.change', has_table_privilege('roost.change', 'select')),
    ('DELETE on roost.change', has_table_privilege('roost.change', 'delete')),
    ('SELECT, INSERT on roost.node',
        has_table_privilege('roost.node', 'select') and has_table_privilege('roost.node', 'insert')),
    ('SELECT, INSERT, UPDATE on roost.cursor',
        has_table_privilege('roost.cursor', 'select') and has_table_privilege('roost.cursor', 'insert')
        and has_table_privilege('roost.cursor', 'update')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.presence',
        has_table_privilege('roost.presence', 'select') and has_table_privilege('roost.presence', 'insert')
        and has_table_privilege('roost.presence', 'update') and has_table_privilege('roost.presence', 'delete')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.session and roost.session_list',
        has_table_privilege('roost.session', 'select') and has_table_privilege('roost.session', 'insert')
        and has_table_privilege('roost.session', 'update') and has_table_privilege('roost.session', 'delete')
        and has_table_privilege('roost.session_list', 'select') and has_table_privilege('roost.session_list', 'insert')
        and has_table_privilege('roost.session_list', 'update') and has_table_privilege('roost.session_list', 'delete')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.session_claim',
        has_table_privilege('roost.session_claim', 'select') and has_table_privilege('roost.session_claim', 'insert')
        and has_table_privilege('roost.session_claim', 'update') and has_table_privilege('roost.session_claim', 'delete')),
    ('SELECT, INSERT, DELETE on roost.online_user',
        has_table_privilege('roost.online_user', 'select') and has_table_privilege('roost.online_user', 'insert')
        and has_table_privilege('roost.online_user', 'delete')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.stream_commit',
        (select bool_and(has_table_privilege('roost.stream_commit', p))
         from unnest('{select,insert,update,delete}'::text[]) p)),
    ('SELECT, INSERT, UPDATE on roost.sign_of_life',
        has_table_privilege('roost.sign_of_life', 'select') and has_table_privilege('roost.sign_of_life', 'insert')
        and has_table_privilege('roost.sign_of_life', 'update')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.push_device, roost.push_activity, roost.alert, roost.alert_device, '
        'roost.badge and roost.push_hub',
        (select bool_and(has_table_privilege('roost.' || t, p))
         from unnest('{push_device,push_activity,alert,alert_device,badge,push_hub}'::text[]) t,
             unnest('{select,insert,update,delete}'::text[]) p)),
    ('SELECT, INSERT, UPDATE, DELETE on roost.timed_source and roost.timed_row',
        (select bool_and(has_table_privilege('roost.' || t, p))
         from unnest('{timed_source,timed_row}'::text[]) t, unnest('{select,insert,update,delete}'::text[]) p)),
    ('SELECT on roost.push_user and roost.living_user',
        has_table_privilege('roost.push_user', 'select') and has_table_privilege('roost.living_user', 'select')),
    ('EXECUTE on function roost.notify(jsonb)', has_function_privilege('roost.notify(jsonb)', 'execute')),
    ('EXECUTE on functions roost.revive and roost.deleted_tables',
        has_function_privilege('roost.revive(xid8, pg_lsn, oid[], integer)', 'execute')
        and has_function_privilege('roost.deleted_tables(xid8[], pg_lsn[], integer)', 'execute')),
    ('SELECT on roost.scope', has_table_privilege('roost.scope', 'select')),
    ('EXECUTE on functions roost.slot_name(), roost.note_captures(), roost.settle_captures() and roost.legible(json)',
        has_function_privilege('roost.slot_name()', 'execute') and has_function_privilege('roost.note_captures()', 'execute')
        and has_function_privilege('roost.settle_captures()', 'execute') and has_function_privilege('roost.legible(json)', 'execute')),
    ('SELECT on roost.captured, roost.capture_mark and roost.capture_news',
        has_table_privilege('roost.captured', 'select') and has_table_privilege('roost.capture_mark', 'select')
        and has_table_privilege('roost.capture_news', 'select')),
    ('TEMPORARY on this database, to compile policies', has_database_privilege(current_database(), 'temporary')),
    ('SELECT on realtime.messages past its policies (BYPASSRLS, or owning it), to replay channels',
        (select has_table_privilege(oid, 'select') and not row_security_active(oid) from messages)),
    ('INSERT on realtime.messages past its policies (BYPASSRLS, or owning it), to keep broadcasts that ask for it',
        (select has_table_privilege(oid, 'insert') and not row_security_active(oid) from messages)),
    ('DELETE on realtime.messages past its policies (BYPASSRLS, or owning it), to end its retention',
        (select not owns_messages or has_table_privilege(oid, 'delete') and not row_security_active(oid) from messages))
) rights (what, granted)
where not granted

-- name: Nodes
-- The hubs of this database: the name, the doorbell, the number connected under the name, the seconds since it last
-- stored its position (null: never), the time of that, and whether writers ring for it (the body of roost.must_ring
-- names its doorbell).
-- Locks: none.
select n.name, n.doorbell, (
           select count(*) from pg_locks l
           where l.locktype = 'advisory' and l.classid = 1919905649 and l.objid = n.doorbell::oid and l.objsubid = 2
             and l.granted and l.database = (select oid from pg_database where datname = current_database())
       ),
       extract(epoch from clock_timestamp() - c.stored_at)::bigint, to_char(c.stored_at, 'YYYY-MM-DD HH24:MI:SS TZ'),
       coalesce(position(format('(1919905651, %s)', n.doorbell) in p.prosrc) > 0, false), quote_literal(n.name)
from roost.node n
left join roost.cursor c on c.node = n.name
left join pg_proc p on p.oid = to_regprocedure('roost.must_ring()')
order by n.name

-- name: ForeignLocks
-- Sessions that hold advisory locks of roost's and should not: the process, its role, the locks.
-- Any role that may connect can take such a lock. Hubs and administrators may use the schema roost; writers to watched
-- tables share the locks of doorbells (1919905651, more than 0) until the end of the transaction.
-- Locks: none.
select l.pid, quote_ident(a.usename),
       string_agg(distinct format('(%s, %s)', l.classid, l.objid), ', ') filter (where l.objid < 10), count(*)
from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
    and l.database = (select oid from pg_database where datname = current_database())
    and l.classid::bigint between 1919905648 and 1919905652 and a.usesysid is not null
    and not has_schema_privilege(a.usesysid, 'roost', 'usage')
    and not (l.classid = 1919905651 and l.objid <> 0 and l.mode = 'ShareLock')
group by l.pid, a.usename
order by l.pid

-- name: StalledHubs
-- Connected hubs whose position has not moved for $1 seconds although there are changes after it that are at least as
-- old: the name, and the age of the first of those changes in seconds. First by the primary key.
-- Locks: none.
select c.node, extract(epoch from clock_timestamp() - w.at)::bigint
from roost.cursor c join roost.node n on n.name = c.node
cross join lateral (
    select h.at from roost.change h
    where h.xid >= pg_snapshot_xmin(c.snapshot) and not pg_visible_in_snapshot(h.xid, c.snapshot)
      and pg_visible_in_snapshot(h.xid, pg_current_snapshot())
    order by h.xid, h.id limit 1
) w
where c.stored_at < clock_timestamp() - make_interval(secs => $1::float8)
  and w.at < clock_timestamp() - make_interval(secs => $1::float8)
  and exists (
      select from pg_locks l
      where l.locktype = 'advisory' and l.classid = 1919905649 and l.objid = n.doorbell::oid and l.objsubid = 2
        and l.granted and l.database = (select oid from pg_database where datname = current_database()))
order by 1

-- name: OutboxState
-- The size of the outbox: live and dead rows according to the statistics, bytes with indexes and TOAST, the age of the
-- oldest change in seconds (null if there is none), whether autovacuum is on, and whether it is off for this table.
-- The oldest is the first by the primary key, which orders by transaction and so nearly by time.
-- Locks: none.
select coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), pg_total_relation_size(c.oid),
       (select extract(epoch from clock_timestamp() - at)::bigint from roost.change order by xid, id limit 1),
       current_setting('autovacuum') = 'on', not coalesce(
           (select o.option_value::boolean from pg_options_to_table(c.reloptions) o
            where o.option_name = 'autovacuum_enabled'), true)
from pg_class c left join pg_stat_all_tables s on s.relid = c.oid
where c.oid = 'roost.change'::regclass

-- name: CastsToJSON
-- Columns of watched tables whose values a user-defined cast turns into JSON, which row_to_json uses: the table, the
-- column, its type and the cast's function. Domains and arrays count by their base and element types.
-- Locks: none.
with recursive part (relid, attname, type) as (
    select w.oid, a.attname, a.atttypid from roost.watched w
    join pg_attribute a on a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
    union
    select p.relid, p.attname, case when t.typtype = 'd' then t.typbasetype else t.typelem end
    from part p join pg_type t on t.oid = p.type and (t.typtype = 'd' or t.typelem <> 0 and t.typcategory = 'A')
)
select format('%I.%I', n.nspname, r.relname), p.attname, format_type(p.type, null), c.castfunc::regprocedure
from part p
join pg_cast c on c.castsource = p.type and c.casttarget = 'json'::regtype and c.castfunc <> 0 and p.type >= 16384
join pg_class r on r.oid = p.relid join pg_namespace n on n.oid = r.relnamespace
order by 1, 2

-- name: UnwatchedChanges
-- Tables with changes among the newest 10,000 of the outbox that are not watched (any more) and have no trigger of
-- roost's: unwatched, or recreated without it, as by a restore. The oid, and the name if the table still exists.
-- Messages of channels ('M') have a trigger of their own, which realtime's check examines; 'X' is the outbox itself.
-- Locks: none.
with newest as materialized (
    select relid, op from roost.change order by xid desc, id desc limit 10000
)
select distinct e.relid, case when c.oid is not null then format('%I.%I', n.nspname, c.relname) end
from newest e
left join pg_class c on c.oid = e.relid
left join pg_namespace n on n.oid = c.relnamespace
where e.op not in ('M', 'X') and not exists (
    select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where t.tgrelid = e.relid and not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
) and not exists (select from roost.watched w where w.oid = e.relid)
order by 1

-- name: SilentWriters
-- Writers, actual or possible, to watched tables that do not fire roost's triggers: the kind, the table or the
-- setting's owner, and the writer.
--
-- Kinds
--   * subscription: logical replication applies another database's changes to the table. Its worker fires row triggers
--     only, and roost's are statement triggers, so ENABLE ALWAYS does not help.
--   * setting: session_replication_role is replica for a role, a database, or a role in a database.
--   * default: it is replica for this very session, which did not set it, and so for every session that does not.
--   * session: the last statement of a session that is still connected set it.
--   * origin: triggers that do not fire under that setting: created by an older version's `roost watch`, or enabled by
--     someone else, as pg_restore --disable-triggers does.
-- Subscriptions are named by their statistics: before Postgres 14 only superusers may join pg_subscription, whose oid
-- is hidden from others.
-- Triggers that are enabled ALWAYS fire under that setting, so tables with only those do not count there.
-- Locks: none beyond those of reading the catalog.
with triggered as (
    select distinct t.tgrelid as oid, coalesce(pg_partition_root(t.tgrelid), t.tgrelid)::oid as root,
           t.tgenabled = 'A' as is_always, t.tgenabled = 'O' as is_origin
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
      and p.proname in ('on_insert', 'on_update', 'on_delete')
), silenced as (
    select exists (select from triggered where not is_always) as is_any
)
select distinct 'origin', format('%I.%I', n.nspname, c.relname), null::text
from triggered t join pg_class c on c.oid = t.root join pg_namespace n on n.oid = c.relnamespace
where t.is_origin
union all
select distinct 'subscription', format('%I.%I', n.nspname, c.relname), quote_ident(s.subname)
from triggered t
join pg_subscription_rel r on r.srrelid = t.oid or r.srrelid = t.root
join pg_stat_subscription s on s.subid = r.srsubid
join pg_class c on c.oid = t.root
join pg_namespace n on n.oid = c.relnamespace
union all
select 'setting', concat_ws(' in ',
           'the role ' || quote_ident(a.rolname), 'the database ' || quote_ident(d.datname)),
       concat('alter ', case when a.oid is not null then 'role ' || quote_ident(a.rolname) else 'database '
           || quote_ident(d.datname) end, case when a.oid is not null and d.oid is not null then ' in database '
           || quote_ident(d.datname) end, ' reset session_replication_role')
from pg_db_role_setting v
left join pg_roles a on a.oid = v.setrole
left join pg_database d on d.oid = v.setdatabase
cross join silenced
where is_any and 'session_replication_role=replica' = any (v.setconfig)
  and (v.setdatabase = 0 or d.datname = current_database()) and (a.oid is not null or d.oid is not null)
union all
select 'default', null, null
from pg_settings cross join silenced
where is_any and name = 'session_replication_role' and setting = 'replica'
union all
select 'session', concat_ws(', ', coalesce(nullif(a.application_name, ''), a.usename), a.state), a.pid::text
from pg_stat_activity a cross join silenced
where is_any and a.datname = current_database() and a.pid <> pg_backend_pid()
  and a.query ~* 'session_replication_role[[:space:]]*(=|to)[[:space:]]*''?replica'
order by 1, 2, 3

-- name: RealtimeState
-- The state of realtime.messages: whether the table exists, whether roost's trigger on it is enabled, this session's
-- role, whether there are policies, whether this session may create the trigger, whether the table belongs to Supabase
-- alone, and the name of roost's trigger if it is disabled.
-- Locks: none.
select c.oid is not null,
       exists (
           select from pg_trigger t
           where t.tgrelid = c.oid and t.tgfoid = 'roost.on_message()'::regprocedure and t.tgenabled in ('O', 'A')
       ),
       quote_ident(current_user),
       exists (select from pg_policy p where p.polrelid = c.oid),
       coalesce(has_table_privilege(c.oid, 'trigger'), false),
       -- Supabase's platform reserves the schema for this role, and postgres cannot grant rights to it (since July 2026).
       coalesce(o.rolname = 'supabase_realtime_admin' and not pg_has_role(o.oid, 'usage'), false),
       -- The name of a disabled trigger.
       (select quote_ident(t.tgname) from pg_trigger t
        where t.tgrelid = c.oid and t.tgfoid = 'roost.on_message()'::regprocedure and t.tgenabled in ('D', 'R') limit 1)
from (values (1)) one (row)
left join pg_namespace n on n.nspname = 'realtime'
left join pg_class c on c.relnamespace = n.oid and c.relname = 'messages' and c.relkind in ('r', 'p')
left join pg_roles o on o.oid = c.relowner

-- name: PoliciesOfAnyTopic
-- Permissive policies for INSERT on realtime.messages that use realtime.topic() and not the row's topic, and whether
-- one of their roles may log in. pg_depend lists what a policy's expressions refer to.
-- Locks: none.
select quote_ident(p.polname),
       0 = any (p.polroles) or exists (select from pg_roles r where r.oid = any (p.polroles) and r.rolcanlogin)
from pg_class c
join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'realtime'
join pg_attribute a on a.attrelid = c.oid and a.attname = 'topic'
join pg_policy p on p.polrelid = c.oid and p.polcmd in ('a', '*') and p.polpermissive
where c.relname = 'messages'
    and exists (
        select from pg_depend d
        where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_proc'::regclass
            and d.refobjid = to_regprocedure('realtime.topic()'))
    and not exists (
        select from pg_depend d
        where d.classid = 'pg_policy'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass
            and d.refobjid = c.oid and d.refobjsubid = a.attnum)
order by 1

-- name: TablesWithoutPolicy
-- Those of the tables ($1, oids) that have row level security and no policy that could show a row.
-- Locks: none.
select format('%I.%I', n.nspname, c.relname)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.oid = any ($1::oid[]) and c.relrowsecurity and not exists (
    select from pg_policy p where p.polrelid = c.oid and p.polcmd in ('r', '*') and p.polpermissive
)
order by 1

-- name: AlertsOfDay
-- Among the decided alerts of the last day: how many apps were asked to prove the message, how many proved it, how many
-- alerts were sent without a proof and to how many users; and how many were sent because a hub had not answered before
-- their time was over, which is what due_at is then (EnqueueAlerts, DecideAlerts).
-- Locks: none.
select count(*) filter (where reason in ('shown', 'received', 'lost', 'unproven')),
       count(*) filter (where reason in ('shown', 'received')),
       count(*) filter (where reason = 'unproven'),
       count(distinct user_id) filter (where reason = 'unproven'),
       count(*) filter (where state <> 'dropped' and due_at = created_at + interval '30 seconds')
from roost.alert
where created_at > statement_timestamp() - interval '1 day' and state in ('taken', 'expired', 'dropped')

-- name: SilentHubs
-- Hubs with users online that do not decide on alerts: for each, the number of alerts that have waited longer than a
-- hub that waits for proofs takes; 0 if the hub has never sent pushes.
-- Locks: none.
select l.node, count(a.message)
from roost.living_user l
left join roost.alert a on a.user_id = l.user_id and a.state = 'elsewhere'
    and a.created_at < statement_timestamp() - interval '10 seconds' and l.node <> all (a.said)
where a.message is not null or not exists (select from roost.push_hub h where h.node = l.node)
group by l.node
order by l.node

-- name: AuthenticatedExists
-- Whether the role of signed-in users' tokens exists.
-- Locks: none.
select exists (select from pg_roles where rolname = 'authenticated')

-- name: LastingDeletions
-- Members tables of scopes whose deleted rows roost.revive cannot restore: whether the reason is that they are
-- partitioned, their owner, and the owner of roost.revive.
-- Locks: none.
select format('%I.%I', n.nspname, c.relname), c.relkind = 'p', c.relowner::regrole, f.proowner::regrole
from roost.watched w
join pg_class c on c.oid = w.oid
join pg_namespace n on n.oid = c.relnamespace
cross join pg_proc f
where f.oid = 'roost.revive(xid8, pg_lsn, oid[], integer)'::regprocedure
  and exists (select from roost.scope s where c.oid = any (s.members::oid[]))
  and (c.relkind = 'p' or not pg_has_role(f.proowner, c.relowner, 'usage'))
order by 1
