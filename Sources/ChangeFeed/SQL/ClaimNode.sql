-- Takes this session's share of the hub's name: every hub that is connected under the name has one, for as long as its
-- session lasts. $1 is the doorbell. It is tried only: no role that
-- takes the lock for itself can keep a hub from its work.
-- Locks: advisory lock (1919905649, doorbell), shared, tried.
select pg_try_advisory_lock_shared(1919905649, $1::int4)
