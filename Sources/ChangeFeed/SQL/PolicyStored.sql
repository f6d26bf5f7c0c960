-- The policies as a function whose names were looked up by the hub, for a role that may not use a schema they name: to
-- Postgres a policy's names are looked up when it is created, and whoever reads the table needs no right to them.
--
-- Invariant: this function lives in a transaction that is rolled back. It depends on what it names, so if it stayed,
-- nobody could drop or alter that; and its body is parsed here, not run.
set local search_path = pg_catalog, pg_temp;
create function pg_temp.{name}_stored(rows_ {type}[], picks int[]) returns setof int language sql stable begin atomic
    {query};
end;
grant execute on function pg_temp.{name}_stored to public;
set local search_path to default
