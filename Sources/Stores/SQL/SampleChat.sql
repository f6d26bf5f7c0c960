-- The operator's statements for the sample chat of `roost demo`: each is one that an operator would configure.

-- name: AudienceOfSampleChat
-- alerts.audience for the sample chat: for a message, everyone in its conversation except the sender.
--
-- $1 is a JSON array with one object for each inserted row: {"row": its number, "schema", "table", "record": {...}}.
-- The result has one row for each number and user_id, with whatever else the templates use.
--
-- Invariants
--   * It runs as the hub's role and decides nothing about rights: rows that a user's own policies hide are not sent.
--   * unread counts the newest 99 messages of a conversation that were written since the user last read there, and
--     badge sums up the conversations that are not muted, once for each user.
-- Locks: none but those of reading.
with heard as materialized (
    select n.row, p.user_id, p.conversation_id, p.muted, m.sender_id, m.body,
           floor(extract(epoch from m.created_at))::bigint as sent_at
    from jsonb_to_recordset($1) n (row int, "table" text, record jsonb)
    cross join jsonb_to_record(n.record) m (conversation_id uuid, sender_id uuid, body text, created_at timestamptz)
    join public.conversation_participants p on p.conversation_id = m.conversation_id and p.user_id <> m.sender_id
    where n."table" = 'messages' and exists (select from roost.push_user u where u.user_id = p.user_id::text)
), unread as materialized (
    select p.user_id, p.conversation_id, p.muted, (
        select count(*) from (
            select sender_id, created_at from public.messages m
            where m.conversation_id = p.conversation_id order by m.id desc limit 99
        ) recent
        where recent.sender_id <> p.user_id and recent.created_at > coalesce(p.last_read_at, '-infinity')
    ) as messages
    from public.conversation_participants p
    where p.user_id = any (array(select distinct user_id from heard))
), badges as materialized (
    select user_id, sum(messages) filter (where not muted) as badge from unread group by user_id
)
select h.row, h.user_id, h.muted, b.badge, u.messages as unread, h.conversation_id,
       coalesce(c.title, s.name) as conversation_name, h.sender_id, s.name as sender_name, h.body, h.sent_at
from heard h
join public.conversations c on c.id = h.conversation_id
join public.users s on s.id = h.sender_id
left join unread u on u.user_id = h.user_id and u.conversation_id = h.conversation_id
left join badges b on b.user_id = h.user_id

-- name: BadgeOfSampleChat
-- alerts.badge for the sample chat: the numbers on the icons of users ($1), as alerts.audience counts them.
-- Locks: none but those of reading.
select p.user_id, sum((
    select count(*) from (
        select sender_id, created_at from public.messages m
        where m.conversation_id = p.conversation_id order by m.id desc limit 99
    ) recent
    where recent.sender_id <> p.user_id and recent.created_at > coalesce(p.last_read_at, '-infinity')
)) filter (where not p.muted) as badge
from public.conversation_participants p
where p.user_id = any (array(
    select id::uuid from unnest($1::text[]) id where id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$'))
group by p.user_id

-- name: FactsOfSampleChat
-- live_activity.facts for the sample chat: the state of the conversation $2 for the user $1. No row if there is none.
--
-- Invariant: it runs as the user, so row level security decides whether there is anything to show.
-- Locks: none but those of reading.
select p.conversation_id, coalesce(c.title, other.name, s.name) as conversation_name, m.sender_id, s.name as sender_name,
       m.body, floor(extract(epoch from m.created_at))::bigint as sent_at, (
           select count(*) from (
               select sender_id, created_at from public.messages r
               where r.conversation_id = p.conversation_id order by r.id desc limit 99
           ) recent
           where recent.sender_id <> p.user_id and recent.created_at > coalesce(p.last_read_at, '-infinity')
       ) as unread
from public.conversation_participants p
join public.conversations c on c.id = p.conversation_id
left join lateral (
    select * from public.messages m where m.conversation_id = p.conversation_id order by m.id desc limit 1
) m on true
left join public.users s on s.id = m.sender_id
left join lateral (
    select u.name from public.conversation_participants q join public.users u on u.id = q.user_id
    where q.conversation_id = p.conversation_id and q.user_id <> p.user_id
    order by u.name limit 1
) other on true
where p.user_id = $1::uuid and p.conversation_id = $2::uuid

-- name: StatusOfSampleChat
-- users.statement for the sample chat: writes to public.users who came online and who went offline.
--
-- Invariants
--   * An offline user becomes online; any other status, such as "away", is the application's and stays until the user
--     goes offline.
--   * last_seen never decreases: after a crash a transition may be told late.
--   * An id that is not a uuid is skipped. The cast is on the side of the ids, so that the primary key can be used.
-- Locks: the users' rows.
update public.users u
set status = case when s.online then 'online' else 'offline' end,
    last_seen = greatest(u.last_seen, s.at)
from unnest($1::text[], $2::boolean[], $3::timestamptz[]) s (id, online, at)
where u.id = case when s.id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' then s.id::uuid end
    and (not s.online or u.status = 'offline')

-- name: ReceiptsOfSampleChat
-- receipts.statement for the sample chat: stores a message as delivered once a user certainly has it.
--
-- Invariants
--   * The same receipt may come again: the first time counts. A message that is read already stays so.
--   * Senders do not receive their own messages, and an id that is not a uuid is skipped.
-- Locks: the receipts' rows.
insert into public.read_receipts (message_id, user_id, conversation_id, delivered_at)
select m.id, u.id, m.conversation_id, r.at
from unnest($1::text[], $2::text[], $3::jsonb[], $4::timestamptz[], $5::text[]) r (user_id, source, key, at, kind)
join public.messages m on m.id = (r.key ->> 'id')::bigint
join public.users u on u.id = case when r.user_id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' then r.user_id::uuid end
where r.source = 'public.messages' and m.sender_id <> u.id
on conflict do nothing
