-- Declares that the visibility of a table's rows ($1, an oid) depends on a column ($2) only, as long as the members
-- tables ($3, oids) do not change; an earlier declaration is replaced.
-- Locks: the table's row in roost.scope.
insert into roost.scope (relid, scope_column, members) values ($1::oid, $2, $3::oid[]::regclass[])
on conflict (relid) do update set scope_column = excluded.scope_column, members = excluded.members
