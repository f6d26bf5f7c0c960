-- users.statement for the sample chat: who came online and who went is written to public.users.
--
-- Invariants
--   * Of an offline user online is made; any other status, such as "away", is the application's and stays until the
--     user goes.
--   * last_seen never goes back: after a crash a transition may be told late.
--   * An id that is no uuid is passed over. The cast is on the side of the ids, so that the primary key serves.
-- Locks: the users' rows.
update public.users u
set status = case when s.online then 'online' else 'offline' end,
    last_seen = greatest(u.last_seen, s.at)
from unnest($1::text[], $2::boolean[], $3::timestamptz[]) s (id, online, at)
where u.id = case when s.id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' then s.id::uuid end
    and (not s.online or u.status = 'offline')
