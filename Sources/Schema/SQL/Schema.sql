-- Which version of the schema roost a database has.
-- Locks: none.

-- name: SchemaExists
-- Whether roost was ever migrated here. to_regclass, as a statement that names a missing table is refused before it
-- runs.
-- Locks: none.
select to_regclass('roost.meta') is not null

-- name: InstalledVersion
-- The version of roost's schema; asked only where SchemaExists says that there is one.
-- Locks: none.
select schema_version from roost.meta
