-- Who is to hear of changes, by the operator's statement.
-- Locks: none of roost's.

-- name: BeginReading
-- Begins a transaction for an audience statement, which is the operator's: it writes nothing, and nobody waits for it
-- for long.
begin read only;
set local statement_timeout = '2s';
set local lock_timeout = '500ms'

-- name: AskAudience
-- Who is to hear of some changes: what the operator's statement (alerts.audience) says of users who have a phone or an
-- activity. $1 is the statement's: an array of {"row", "schema", "table", "record"}.
--
-- Invariants
--   * Of users without a registration nothing is fetched, nor what the statement says of them put into JSON.
--   * Registrations are looked up one by one by their index, however few rows the planner expects there.
-- Locks: none of roost's.
select m.change, m.user_id, m.variables - 'row', m.variables ->> 'muted', m.variables ->> 'badge', d.found
from (
    select a.row::int as change, a.user_id::text as user_id, to_jsonb(a) as variables
    from (
{statement}
    ) a
) m
left join lateral (
    select true as found from roost.push_device d where d.user_id = m.user_id and d.kind = 'alert' limit 1
) d on true
left join lateral (
    select true as found from roost.push_user u where u.user_id = m.user_id and d.found is null limit 1
) u on true
where d.found or u.found

-- name: FindBearers
-- With what role and claims each of some users ($1) registered a phone or an activity last.
-- Locks: none.
select distinct on (user_id) user_id, role, claims
from (
    select user_id, role, claims, registered_at from roost.push_device where user_id = any ($1::text[])
    union all
    select user_id, role, claims, registered_at from roost.push_activity
    where user_id = any ($1::text[]) and ended_at is null
) r
order by user_id, registered_at desc

-- name: AudienceOfSampleChat
-- alerts.audience for the sample chat: of a message everybody in its conversation but the sender.
--
-- $1 is a JSON array with one object for each inserted row: {"row": its number, "schema", "table", "record": {…}}.
-- What comes back is one row for each number and user_id, and whatever else the templates use.
--
-- Invariants
--   * It runs as the hub's role and is no question of rights: what a user's own policies hide is not sent.
--   * unread counts the newest 99 messages of a conversation that were written since the user last read there, and
--     badge adds up the conversations that are not muted, once for each user.
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
