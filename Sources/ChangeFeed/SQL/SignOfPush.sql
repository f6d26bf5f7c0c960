-- This hub ($1) sends pushes, and is there.
-- Locks: the hub's own row.
insert into roost.push_hub (node, at) values ($1, clock_timestamp())
on conflict (node) do update set at = excluded.at
