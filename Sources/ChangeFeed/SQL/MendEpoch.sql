-- After a tool has written the table of epochs anew in place, row 0 says again who wrote it (Migration010Epochs.sql).
-- Locks: the row.
update roost.epoch set born = pg_current_xact_id() where id = 0 and xmin <> born::xid
