-- This hub ($1) is there: now and then while users are online, and when it stops.
-- Locks: the hub's own row.
insert into roost.sign_of_life (node, at) values ($1, clock_timestamp())
on conflict (node) do update set at = excluded.at
