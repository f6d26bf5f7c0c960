-- Whom a hub serves with row changes, so that the next process of that hub brings what was missed to those who were there
-- before, and nothing old to those who are new.
--
-- Invariants
--   * A hub with a row in session_list answers no join for row changes before the join's session is in roost.session, so
--     that whoever is not there was never told that it is subscribed. Where that cannot be kept, the hub takes its row out.
--     A hub that finds no row when it starts brings what was missed to everybody who joins.
--   * Both tables are unlogged: what they are for survives a killed hub and a clean restart of Postgres. After a crash of
--     Postgres, and on a promoted standby, both are empty, which says that nothing is known; every hub lost its connection
--     then, and writes anew.
--   * key is a digest of user, sign-in, role, topic and subscription: nobody can be read from it.
-- Lock order: session, then session_list.
-- Locks: none but on the new tables.

create unlogged table roost.session (
    node text not null,
    key uuid not null,
    sessions integer not null check (sessions > 0),
    primary key (node, key)
);
comment on table roost.session is 'Who may come back to each hub (node) for row changes that it missed, as digests.';
comment on column roost.session.sessions is 'How many clients look alike in this; 32 stands for all that is more.';

create unlogged table roost.session_list (
    node text primary key
);
comment on table roost.session_list is 'The hubs of which roost.session lists everybody.';

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant select, insert, update, delete on roost.session to %s', hub::regrole);
        execute format('grant select, insert, delete on roost.session_list to %s', hub::regrole);
    end loop;
end
$$;
