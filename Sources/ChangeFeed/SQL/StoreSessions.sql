-- Writes down who may come back to this hub ($1): keys that nobody may come back for ($2), and the others with how many
-- ($3, $4).
-- Invariant: a key comes once in one statement, either gone or there.
-- Locks: rows of this hub's own, which nobody else writes.
with gone as (
    delete from roost.session where node = $1 and key = any ($2::uuid[])
)
insert into roost.session (node, key, sessions)
select $1, * from unnest($3::uuid[], $4::integer[])
on conflict (node, key) do update set sessions = excluded.sessions
