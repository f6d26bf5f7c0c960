-- What a user has read on one device is not alerted on the others, and their icons follow.
--
-- Invariants
--   * written is the value of the message's column that read positions are compared with (alerts.read_message), as text; null where
--     the message has none.
--   * Of several hubs that see a read position move, one tells the user's phones the new number: whoever changes the row of
--     roost.badge (ClaimBadges).
-- Lock order: rows of roost.alert as in Migration008Push.sql; a row of roost.badge alone.
-- Locks: ACCESS EXCLUSIVE on roost.alert for a moment.

alter table roost.alert add written text;
comment on column roost.alert.written is 'Where the message lies among those of its conversation, to be compared with read positions.';

create table roost.badge (
    user_id text primary key,
    badge integer,
    pushed_at timestamptz not null
) with (fillfactor = 80);
comment on table roost.badge is
    'The number that was pushed to a user''s phones last because something was read; null where an alert said another since.';

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant select, insert, update, delete on roost.badge to %s', hub::regrole);
    end loop;
end
$$;
