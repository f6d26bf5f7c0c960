-- Closes what this hub ($1) had taken to send when its last process ended, and returns how many that were: nobody knows
-- whether they left, and they are not sent again.
-- Locks: the hub's own rows.
with closed as (
    update roost.alert_device set outcome = 'unknown' where outcome is null and node = $1 returning 1
)
select count(*) from closed
