-- live_activity.facts for the sample chat: how the conversation $2 stands for the user $1. No row where there is none.
--
-- Invariant: it runs as the user, so row level security decides whether there is anything to tell.
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
