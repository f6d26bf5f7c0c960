-- Whether a role ($2) has what a SELECT from realtime.messages ($1: its oid) takes besides its policies. No row: no such
-- role. The id stands for the row, as in the original's probes.
-- Locks: none.
select has_schema_privilege(r.oid, c.relnamespace, 'usage') and has_column_privilege(r.oid, c.oid, 'id', 'select')
from pg_roles r cross join pg_class c
where r.rolname::text = $2 and c.oid = $1::oid
