-- The version of roost's schema; asked only where SchemaExists.sql says that there is one.
-- Locks: none.
select schema_version from roost.meta
