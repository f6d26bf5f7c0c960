-- What could be lost without a word: who is on no list.
--
-- Invariants
--   * A claim that roost.session lists everybody (a row of session_list) is for a turn, and counts only while that is the
--     turn of the hub's row in cursor. Before a join is answered that is not on the list, the feed moves that turn on, by a
--     statement of its own on its own connection. So the list does not count from then on, even where it cannot be
--     written, as because of a lock, a right or the room. A hub that can write neither refuses the join.
--   * A claim is for a turn that was read before the list was found complete, and a turn never comes again: a statement
--     that a dead connection left behind and that runs late makes no list count.
-- Lock order: as in Migration010Epochs.sql.
-- Locks: ACCESS EXCLUSIVE on cursor and session_list for a moment.

alter table roost.cursor add list_turn bigint not null default 0;
comment on column roost.cursor.list_turn is 'Which claims of session_list count. It moves on when somebody is left out.';
alter table roost.session_list add turn bigint not null default 0;
comment on column roost.session_list.turn is 'The list counts while this is cursor.list_turn.';

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant update on roost.session_list to %s', hub::regrole);
    end loop;
end
$$;
