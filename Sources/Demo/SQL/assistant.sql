-- The demo's assistant: what becomes of its replies, and who may read and stop them. Needs seed.sql and Roost's own
-- tables (realtime.messages); safe to run again.
--
-- Invariants
--   * A reply is the stream `reply/CONVERSATION/QUESTION`, where QUESTION is the local_id of the message that asks; the row
--     that it becomes has the same local_id. So a question has one reply, and a page knows stream and row for the same.
--   * Members of the conversation read and may stop it; nobody but the service writes it.

-- The conversation that a stream's name is about; null where it is no reply's.
create or replace function demo.conversation_of(stream text) returns uuid
language sql immutable set search_path = '' as $$
    select substring(stream from
        '^reply/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$')::uuid
$$;

-- What the demo sets as `streams.on_close`, and what keeps a reply that was stopped: the row of the reply. None for streams
-- of other names, which one may make by hand, and for a reply without a word.
create or replace function demo.keep_reply(stream text, reply text) returns setof public.messages
language plpgsql set search_path = '' as $$
declare
    conversation constant uuid := demo.conversation_of(stream);
    question constant text := split_part(stream, '/', 3);
begin
    if conversation is null or reply !~ '\S' then
        return;
    end if;
    insert into public.messages (conversation_id, sender_id, body, local_id)
    values (conversation, demo.assistant(), reply, question::uuid)
    on conflict (sender_id, local_id) do nothing;
    return query
        select * from public.messages m where m.sender_id = demo.assistant() and m.local_id = question::uuid;
end
$$;

drop policy if exists "members read replies" on realtime.messages;
create policy "members read replies" on realtime.messages for select to authenticated using (
    extension = 'broadcast' and realtime.topic() like 'stream:%'
    and public.is_member(demo.conversation_of(substr(realtime.topic(), 8))));
drop policy if exists "members stop replies" on realtime.messages;
create policy "members stop replies" on realtime.messages for insert to authenticated with check (
    extension = 'cancel' and realtime.topic() like 'stream:%'
    and public.is_member(demo.conversation_of(substr(realtime.topic(), 8))));

revoke all on function demo.conversation_of(text), demo.keep_reply(text, text) from public;
grant execute on function demo.conversation_of(text) to authenticated, service_role;
grant execute on function demo.keep_reply(text, text) to service_role;
