-- Catch-up: from where clients may have to be told again, and what can no longer be told.
--
-- Invariants
--   * cursor.recovery never sees more than cursor.snapshot does. Both are stored together, so what holds for one in a
--     crash of the server holds for the other (StoreCursor.sql).
--   * meta.pruned_xid is at least the highest transaction of which a change was pruned; it is committed together with
--     the deletes (Prune.sql). Null until something was.
-- Locks: ACCESS EXCLUSIVE on both tables for a moment.
alter table roost.cursor add recovery pg_snapshot, add timeline integer;
comment on column roost.cursor.recovery is
    'What every client of the hub certainly has: where they go on if the hub is killed. Null where nothing was stored.';
comment on column roost.cursor.timeline is 'The timeline of the WAL that the snapshots were taken on.';

alter table roost.meta add pruned_xid xid8;
comment on column roost.meta.pruned_xid is
    'The highest transaction of which changes were deleted: who has not seen it cannot be told what he missed.';
