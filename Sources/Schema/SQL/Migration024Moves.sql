-- Clients that moved from one hub to another: what the first kept for such a client ends, so that it is not sent the same rows again
-- whenever it moves.
--
-- Invariants
--   * A hub claims a session that another hub kept only when the client that came for it has proven that it lacks nothing of it, and
--     when its own row of that client is written. So whatever becomes of the claim, nothing is lost: without it rows come again.
--   * A claim counts for a row of one session that was lost (lost_at) by the time at which the claiming hub looked for it (sought_at).
--     A hub that has somebody alive who looks the same writes no lost_at before it has answered him, so that no claim, however late,
--     takes anything from him.
--   * Only the owner of a row writes it. Who reads rows of session reads those that are not claimed; the owner takes the claims, and
--     forgets what they say.
--   * Unlogged, like session: where one is emptied, so is the other.
-- Locks: ACCESS EXCLUSIVE on session for a moment; it is small.

alter table roost.session add lost_at timestamptz;
comment on column roost.session.lost_at is
    'When the only client that it stands for was lost; null: it is there, there are several, or nobody knows.';

create unlogged table roost.session_claim (
    node text not null,
    key uuid not null,
    sought_at timestamptz not null,
    primary key (node, key)
);
comment on table roost.session_claim is
    'Sessions of hubs (node) whose clients went on at another hub, which looked for them at sought_at.';

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant select, insert, update, delete on roost.session_claim to %s', hub::regrole);
    end loop;
end
$$;
