-- Scopes: declarations that a row's visibility depends on one of its columns only, for as long as some other tables,
-- the members tables, do not change. Written by `roost watch --scope`, judged by Scopes.sql.
--
-- Invariants
--   * A declaration never widens what anybody sees: the hub uses it only where Scopes.sql finds nothing wrong with it.
--   * Members tables are watched, TRUNCATE included: every change that may alter an answer is in the outbox.
--     on_truncate writes one row (op 'T', without a record) for each table that was emptied; of a partitioned one each
--     partition counts, all under the root's oid.
--   * regclass, so that a dump names tables, and a restored one finds them.
-- Lock order: on_truncate as the triggers of Migration002Triggers.sql; the TRUNCATE holds its own lock already.

create table roost.scope (
    relid regclass primary key,
    scope_column name not null,
    members regclass[] not null
);
comment on table roost.scope is
    'Tables whose rows'' visibility depends on scope_column only, as long as the members tables do not change.';

create function roost.on_truncate() returns trigger
    language plpgsql security definer
as $$
begin
    insert into roost.change (relid, op)
    values (coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'T');
    if roost.must_ring() then
        perform pg_catalog.pg_notify('roost', '');
    end if;
    return null;
end
$$;
revoke execute on function roost.on_truncate() from public;
