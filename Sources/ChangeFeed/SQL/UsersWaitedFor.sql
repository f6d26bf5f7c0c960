-- Users for whom alerts wait that this hub ($1) put into the queue: held here, or thought to be elsewhere.
-- Locks: none.
select distinct user_id from roost.alert where state in ('held', 'elsewhere') and node = $1
