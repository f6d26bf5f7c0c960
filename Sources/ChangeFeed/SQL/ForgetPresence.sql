-- Deletes what is said to be present at this hub ($1) and is not ($2: the refs of all who are).
-- Locks: rows of this hub's own, which nobody else writes.
delete from roost.presence p
where node = $1 and not exists (select from unnest($2::text[]) there (ref) where there.ref = p.ref)
