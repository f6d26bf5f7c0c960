-- Who writes, or may write, watched tables without firing roost's triggers: the kind, the table or the setting's owner, and
-- who it is.
--
-- Kinds
--   * subscription: logical replication applies another database's changes to the table. Its worker fires row triggers
--     only, and roost's are statement triggers, so ENABLE ALWAYS does not help.
--   * setting: session_replication_role is replica for a role, a database, or one in the other.
--   * default: it is so for this very session, which set nothing itself, so for all that set nothing.
--   * session: that is what a session, which is still there, asked last.
-- Subscriptions are named by their statistics: before Postgres 14 only superusers may join pg_subscription, whose oid is
-- hidden from others.
-- Triggers that are enabled ALWAYS fire under that setting, so tables of theirs do not count there.
-- Locks: none beyond those of reading the catalog.
with triggered as (
    select distinct t.tgrelid as oid, coalesce(pg_partition_root(t.tgrelid), t.tgrelid)::oid as root,
           t.tgenabled = 'A' as is_always
    from pg_trigger t join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.pronamespace = to_regnamespace('roost')
      and p.proname in ('on_insert', 'on_update', 'on_delete')
), silenced as (
    select exists (select from triggered where not is_always) as is_any
)
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
