-- What the role of this session may do with roost's objects; one row per right it lacks.
-- Locks: none.
select what from (values
    ('USAGE on schema roost', has_schema_privilege('roost', 'usage')),
    ('SELECT on roost.meta', has_table_privilege('roost.meta', 'select')),
    ('SELECT on roost.change', has_table_privilege('roost.change', 'select')),
    ('UPDATE on roost.change', has_table_privilege('roost.change', 'update')),
    ('DELETE on roost.change', has_table_privilege('roost.change', 'delete')),
    ('SELECT, INSERT on roost.node',
        has_table_privilege('roost.node', 'select') and has_table_privilege('roost.node', 'insert')),
    ('SELECT, INSERT, UPDATE on roost.cursor',
        has_table_privilege('roost.cursor', 'select') and has_table_privilege('roost.cursor', 'insert')
        and has_table_privilege('roost.cursor', 'update'))
) rights (what, granted)
where not granted
