-- Where those stand who may come back to a hub, so that the next process of that hub sends nobody more than it may lack, and
-- nothing from before it first came.
--
-- Invariants
--   * Whoever is at a row's place, or beyond it, lacks nothing that the place sees. A row without one stands for who may
--     lack all that the hub stored for its clients (cursor.recovery).
--   * Of a row that follows, that holds for what the hub's list says is proven as well: whichever of both lies further on.
--     So no row follows of which somebody may lack anything of what is proven: the hub writes the rows first, and then
--     what is proven, both on one connection.
--   * A place is the hub's own: a snapshot of the feed that its process read up to. It means nothing without the row of
--     cursor, and goes with it: the tables are unlogged, as before.
-- Locks: ACCESS EXCLUSIVE on session and session_list for a moment; both are small.

alter table roost.session add follows boolean not null default false, add place pg_snapshot;
comment on column roost.session.place is
    'What all of them certainly have; null: no more than cursor.recovery says of everybody.';
comment on column roost.session.follows is
    'Their clients prove every few seconds what they have: they have what session_list.proven sees, too.';

alter table roost.session_list add proven pg_snapshot;
comment on column roost.session_list.proven is 'What all have who follow.';
