-- How many sessions this role may still open, by each of the limits there are, null where one does not count for it:
-- max_connections without what is kept for superusers, the role's own, the database's. And max_connections, and whether
-- a hub is connected, whose sessions are counted already.
-- pg_stat_activity hides what others do, but not that they are there.
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
