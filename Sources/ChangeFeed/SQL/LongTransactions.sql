-- Transactions that have been open for longer than $1 seconds, the oldest first: who has it, since when, and the
-- statement that ends it. A role that may not look at others' sessions sees its own only.
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
