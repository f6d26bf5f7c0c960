-- What the role of this session may do with roost's objects; one row per right it lacks.
-- What it needs of realtime.messages depends on whether there is one, and whose. Where a right cannot be asked about,
-- it is null, and not lacking.
-- Locks: none.
with messages as (
    select c.oid, owns_messages from roost.meta
    left join pg_namespace n on n.nspname = 'realtime'
    left join pg_class c on c.relnamespace = n.oid and c.relname = 'messages' and c.relkind in ('r', 'p')
)
select what from (values
    ('USAGE on schema roost', has_schema_privilege('roost', 'usage')),
    ('SELECT on roost.meta', has_table_privilege('roost.meta', 'select')),
    ('UPDATE (pruned_xid, unpruned) on roost.meta',
        has_column_privilege('roost.meta', 'pruned_xid', 'update')
        and has_column_privilege('roost.meta', 'unpruned', 'update')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.epoch',
        has_table_privilege('roost.epoch', 'select') and has_table_privilege('roost.epoch', 'insert')
        and has_table_privilege('roost.epoch', 'update') and has_table_privilege('roost.epoch', 'delete')),
    ('SELECT, INSERT on roost.run',
        has_table_privilege('roost.run', 'select') and has_table_privilege('roost.run', 'insert')),
    ('SELECT on roost.change', has_table_privilege('roost.change', 'select')),
    ('DELETE on roost.change', has_table_privilege('roost.change', 'delete')),
    ('SELECT, INSERT on roost.node',
        has_table_privilege('roost.node', 'select') and has_table_privilege('roost.node', 'insert')),
    ('SELECT, INSERT, UPDATE on roost.cursor',
        has_table_privilege('roost.cursor', 'select') and has_table_privilege('roost.cursor', 'insert')
        and has_table_privilege('roost.cursor', 'update')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.presence',
        has_table_privilege('roost.presence', 'select') and has_table_privilege('roost.presence', 'insert')
        and has_table_privilege('roost.presence', 'update') and has_table_privilege('roost.presence', 'delete')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.session and roost.session_list',
        has_table_privilege('roost.session', 'select') and has_table_privilege('roost.session', 'insert')
        and has_table_privilege('roost.session', 'update') and has_table_privilege('roost.session', 'delete')
        and has_table_privilege('roost.session_list', 'select') and has_table_privilege('roost.session_list', 'insert')
        and has_table_privilege('roost.session_list', 'update') and has_table_privilege('roost.session_list', 'delete')),
    ('SELECT, INSERT, DELETE on roost.online_user',
        has_table_privilege('roost.online_user', 'select') and has_table_privilege('roost.online_user', 'insert')
        and has_table_privilege('roost.online_user', 'delete')),
    ('SELECT, INSERT, UPDATE on roost.sign_of_life',
        has_table_privilege('roost.sign_of_life', 'select') and has_table_privilege('roost.sign_of_life', 'insert')
        and has_table_privilege('roost.sign_of_life', 'update')),
    ('SELECT, INSERT, UPDATE, DELETE on roost.push_device, roost.push_activity, roost.alert, roost.alert_device and '
        'roost.push_hub',
        (select bool_and(has_table_privilege('roost.' || t, p))
         from unnest('{push_device,push_activity,alert,alert_device,push_hub}'::text[]) t,
             unnest('{select,insert,update,delete}'::text[]) p)),
    ('SELECT on roost.push_user and roost.living_user',
        has_table_privilege('roost.push_user', 'select') and has_table_privilege('roost.living_user', 'select')),
    ('SELECT on roost.scope', has_table_privilege('roost.scope', 'select')),
    ('TEMPORARY on this database, to compile policies', has_database_privilege(current_database(), 'temporary')),
    ('SELECT on realtime.messages past its policies (BYPASSRLS, or owning it), to replay channels',
        (select has_table_privilege(oid, 'select') and not row_security_active(oid) from messages)),
    ('DELETE on realtime.messages past its policies (BYPASSRLS, or owning it), to end its retention',
        (select not owns_messages or has_table_privilege(oid, 'delete') and not row_security_active(oid) from messages))
) rights (what, granted)
where not granted
