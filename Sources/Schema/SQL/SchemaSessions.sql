-- Whom a hub serves with row changes, and where those clients stand, so that the next process of that hub, or another hub that a client
-- moved to, brings what was missed to those who were there before, and nothing old to those who are new.
--
-- Invariants
--   * A hub with a row in session_list answers no join for row changes before the join's session is in roost.session, so that a client
--     which is not there was never told that it is subscribed. Where that cannot be kept, the hub takes its row out. A hub that finds no
--     row when it starts brings what was missed to everybody who joins.
--   * A claim that roost.session lists everybody (a row of session_list) is for a turn, and counts only while that is the turn of the
--     hub's row in cursor. Before a join is answered that is not on the list, the feed moves that turn on, by a statement of its own on
--     its own connection. So the list does not count afterwards, even where it cannot be written, as because of a lock, a right or the
--     room. A hub that can write neither refuses the join.
--   * A claim is for a turn that was read before the list was found complete, and a turn never comes again: a statement that a dead
--     connection left behind and that runs late makes no list count.
--   * Who is at a row's place, or beyond it, lacks nothing that the place sees. A row without one stands for clients that may lack all
--     that the hub stored for them (cursor.recovery). Of a row that follows, that holds for session_list.proven as well: whichever of both
--     lies further on. So no row follows of which somebody may lack anything of what is proven: the hub writes the rows first, and then
--     what is proven, both on one connection.
--   * A place is the hub's own: a snapshot of the feed that its process read up to. It means nothing without the row of cursor.
--   * A hub's list is older than seen_at says by no more than the time that the hub has been down: while it writes its list it says so
--     every 15 s. So a list that was not seen for the longest recovery window and that time is one of a hub that nobody comes back from,
--     as of one that was given up, or of a restored dump.
--   * A session is found by its key whichever hub wrote it down; only that hub writes it. Who reads rows of session reads those that are
--     not claimed; the owner takes the claims, and forgets what they say.
--   * A hub claims a session that another hub kept only when the client that came for it has proven that it lacks nothing of it, and when
--     its own row of that client is written. So whatever becomes of the claim, nothing is lost: without it rows come again. A claim counts
--     for a row of one session that was lost (lost_at) by the time at which the claiming hub looked for it (sought_at). A hub with a
--     living client that looks the same writes no lost_at before it has answered it, so that no claim, however late, takes anything from
--     that client.
--   * All are unlogged: what they are for survives a killed hub and a clean restart of Postgres. After a crash of Postgres, and on a
--     promoted standby, all are empty, which says that nothing is known; every hub lost its connection then, and writes anew.
--   * key is a digest of user, sign-in, role, topic and subscription: nobody can be read from it.
-- Lock order: session, then session_list.

create unlogged table roost.session (
    node text not null,
    key uuid not null,
    sessions integer not null check (sessions > 0),
    follows boolean not null default false,
    place pg_snapshot,
    lost_at timestamptz,
    primary key (node, key)
);
create index session_key on roost.session (key);
comment on table roost.session is 'Who may come back to each hub (node) for row changes that it missed, as digests.';
comment on column roost.session.sessions is 'How many clients look alike in this; 32 stands for all that is more.';
comment on column roost.session.follows is
    'Their clients prove every few seconds what they have: they have what session_list.proven sees, too.';
comment on column roost.session.place is 'What all of them certainly have; null: no more than cursor.recovery says of everybody.';
comment on column roost.session.lost_at is
    'When the only client that it stands for was lost; null: it is there, there are several, or nobody knows.';

create unlogged table roost.session_list (
    node text primary key,
    turn bigint not null default 0,
    seen_at timestamptz not null default clock_timestamp(),
    proven pg_snapshot
);
comment on table roost.session_list is 'The hubs of which roost.session lists everybody.';
comment on column roost.session_list.turn is 'The list counts while this is cursor.list_turn.';
comment on column roost.session_list.seen_at is 'When the hub last said that it writes this list.';
comment on column roost.session_list.proven is 'What all have who follow.';

create unlogged table roost.session_claim (
    node text not null,
    key uuid not null,
    sought_at timestamptz not null,
    primary key (node, key)
);
comment on table roost.session_claim is 'Sessions of hubs (node) whose clients went on at another hub, which looked for them at sought_at.';
