-- The name of this run of the server, since its start and its last crash; $1 is for the case that it has none.
-- Locks: the new row.
with made as (
    insert into roost.run (id) select $1::bigint where not exists (select from roost.run)
    on conflict do nothing
    returning id
)
select coalesce((select id from made), (select id from roost.run))::text || '/'
       || extract(epoch from pg_postmaster_start_time())::text
