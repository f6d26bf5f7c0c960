-- How full the queue of notifications is, and who may be holding it up: a session that listens reads its notifications
-- only between transactions. Who listens is not shown; the oldest transaction of the cluster is the one to suspect.
-- Locks: none.
select pg_notification_queue_usage(),
       (select format('process %s (%s, in a transaction since %s)', pid,
            coalesce(nullif(application_name, ''), usename), to_char(xact_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
        from pg_stat_activity
        where backend_type = 'client backend' and xact_start is not null and pid <> pg_backend_pid()
        order by xact_start limit 1)
