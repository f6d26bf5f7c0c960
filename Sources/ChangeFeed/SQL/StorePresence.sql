-- Writes down what changed in who is present at this hub ($1): those who are gone ($2, refs), and those who are there
-- ($3 to $10, one array per column).
-- Invariant: a ref comes once in one statement, either gone or there.
-- Locks: rows of this hub's own, which nobody else writes.
with gone as (
    delete from roost.presence where node = $1 and ref = any ($2::text[])
)
insert into roost.presence (node, ref, topic, private, key, made_key, user_id, payload, app_state)
select $1, *
from unnest(
    $3::text[], $4::text[], $5::boolean[], $6::text[], $7::boolean[], $8::text[], $9::text[], $10::text[])
on conflict (node, ref) do update
set topic = excluded.topic, private = excluded.private, key = excluded.key, made_key = excluded.made_key,
    user_id = excluded.user_id, payload = excluded.payload, app_state = excluded.app_state
