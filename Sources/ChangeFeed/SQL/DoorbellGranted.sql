-- Whether the session with this process id ($1) has the doorbell's lock, whatever it says itself.
-- Locks: none.
select exists (
    select from pg_locks
    where locktype = 'advisory' and classid = 1919905651 and pid = $1::int4 and granted and mode = 'ExclusiveLock'
)
