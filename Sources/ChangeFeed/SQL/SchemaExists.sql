-- Whether roost was ever migrated here. to_regclass, as a statement that names a missing table is refused before it
-- runs.
-- Locks: none.
select to_regclass('roost.meta') is not null
