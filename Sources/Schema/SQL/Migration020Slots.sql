-- What the slot may have been told without rows being stored, so that a slot which somebody else moved on is noticed.
--
-- Invariants
--   * The slot is told a place only when it is committed here that nothing is to be stored up to there: by capture.lsn, or
--     by capture.acknowledged. So a slot that stands beyond both was moved on by somebody else (pg_replication_slot_advance,
--     pg_logical_slot_get_changes), or this row is older than the slot (a standby that took over without it): what was
--     committed in between is lost, and clients are told as of a slot that is gone (begin_capture).
--   * acknowledged counts on the server that it was noted on. pg_upgrade makes another server, whose slots begin where it does.
-- Locks: ACCESS EXCLUSIVE on capture for a moment; it has one row.

alter table roost.capture add acknowledged pg_lsn, add acknowledged_on bigint;
comment on column roost.capture.acknowledged is
    'Up to here nothing is to be stored, and the slot may have been told so; null: never noted.';
comment on column roost.capture.acknowledged_on is 'The system identifier of the server that this is about.';
