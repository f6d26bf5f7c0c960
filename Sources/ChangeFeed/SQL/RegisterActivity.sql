-- Notes an activity ($1) of a user ($2, of the session $3, with the role $4 and the claims $5) with its token ($6, $7
-- environment, $8 bundle) and what it is about ($9), to be updated by the hub $10.
--
-- Invariants
--   * Only its own user replaces the token of an activity; there is no row in the answer otherwise.
--   * What the activity was sent last stays, so that timestamps go on where they were, and so does what it is about
--     where nothing is said of that.
--   * A user has no more than $11 activities that have not ended; there is no row in the answer otherwise.
-- Locks: the activity's row.
insert into roost.push_activity as a
    (id, user_id, session, role, claims, token, environment, bundle, conversation, node)
select $1, $2, $3, $4, $5::jsonb - '{exp,iat}'::text[], $6, $7, $8, $9, $10
where (select count(*) from roost.push_activity b where b.user_id = $2 and b.ended_at is null and b.id <> $1) < $11::int
on conflict (id) do update
set session = excluded.session, role = excluded.role, claims = excluded.claims, token = excluded.token,
    environment = excluded.environment, bundle = excluded.bundle,
    conversation = coalesce(excluded.conversation, a.conversation), node = excluded.node,
    registered_at = clock_timestamp(), ended_at = null
where a.user_id = excluded.user_id
returning {activity}
