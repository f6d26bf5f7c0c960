-- Users whom this hub ($1) told to be online, and when they certainly still were, as far as is known, in milliseconds
-- since 1970: the hub lived when any user came, when it stored how far it had handed changes on, and at its last sign.
-- Capped by the server's clock, as the hub's may have been ahead.
-- Locks: none.
select o.user_id,
       floor(extract(epoch from least(greatest(o.since, latest.since, c.stored_at, l.at), clock_timestamp())) * 1000)::bigint
from roost.online_user o
cross join (select max(since) as since from roost.online_user where node = $1) latest
left join roost.cursor c on c.node = $1
left join roost.sign_of_life l on l.node = $1
where o.node = $1
