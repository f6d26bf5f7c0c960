-- Writes an epoch ($1) of this hub ($2), in this run of the server ($3) and on this timeline ($4), with the place where
-- the hub went on when it connected ($5, else null). Never in a subtransaction (Migration010Epochs.sql).
-- Locks: the new row.
insert into roost.epoch (id, node, run, timeline, seam, system_identifier, relation)
select $1::bigint, $2, $3, $4::integer, $5::pg_snapshot, system_identifier, 'roost.epoch'::regclass
from pg_control_system()
