-- Nobody rings into a full queue of notifications: there the commit itself would fail. And who prunes may note it.
--
-- Invariants
--   * A writer never fails because of roost. Postgres refuses the COMMIT of a transaction that notifies while the queue
--     is full, which a session brings about that listens and does not get on, whosever notifications fill it. From 90 %
--     on a writer does not ring, and the hub's slow poll finds his change.
--   * The queue is looked at only by who would ring: "and" is evaluated from the left, and left of it are the locks.
-- Lock order: advisory lock (1919905650, 0) first, as in 002.

create function roost.write_must_ring() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(1919905650, 0);
    execute 'create or replace function roost.must_ring() returns boolean language sql volatile as ' || quote_literal(
        'select not (' || coalesce((
            select string_agg(format('pg_catalog.pg_try_advisory_xact_lock_shared(1919905651, %s)', doorbell),
                ' and ' order by doorbell)
            from roost.node
        ), 'true') || ') and pg_catalog.pg_notification_queue_usage() operator(pg_catalog.<) 0.9');
end
$$;
revoke execute on function roost.write_must_ring() from public;

create or replace function roost.on_node() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform roost.write_must_ring();
    return null;
end
$$;

select roost.write_must_ring();

-- Pruning writes roost.meta.pruned_xid: hubs that are not the owner, and were granted what pruning took, go on pruning.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant update (pruned_xid) on roost.meta to %s', hub::regrole);
    end loop;
end
$$;
