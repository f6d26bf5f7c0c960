-- Several hubs on one database: a client that one of them served may join another.
--
-- Invariants
--   * A hub's list of sessions is older than seen_at says by no more than the time that the hub has been down: while it writes
--     its list it says so every 15 s. So a list that was not seen for the longest recovery window and that time is one of a hub
--     that nobody comes back from, as of one that was given up, or of a restored dump.
--   * A session is found by its key whichever hub wrote it down; only that hub writes it.
-- Locks: ACCESS EXCLUSIVE on session_list and SHARE on session for a moment; both are small.

alter table roost.session_list add seen_at timestamptz not null default clock_timestamp();
comment on column roost.session_list.seen_at is 'When the hub last said that it writes this list.';

create index session_key on roost.session (key);
