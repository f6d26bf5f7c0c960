-- The demo page's HTTP API, one function per route (Sources/Demo/API.md). Needs chat.sql; safe to run again.
--
-- Invariants
--   * Every function is `security invoker`: it runs as `authenticated` with the caller's claims, so row level security
--     decides what is seen and written. Nothing here may ever become `security definer`.
--   * One call, one statement, one json value. What a caller may not see does not exist for it: P0002, never a hint.
--   * The SQLSTATE is the contract with HTTP: 42501 is 403, P0002 is 404, classes 22 and 23 are 400.

create schema if not exists demo;
grant usage on schema demo to authenticated, service_role;

-- The author of scripted replies (assistant.sql). It is nobody's to be, and a member of no conversation.
create or replace function demo.assistant() returns uuid
language sql immutable set search_path = '' as $$
    select 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'::uuid
$$;

-- The people one can be in the demo. For the session route only, which runs as service_role.
create or replace function demo.users() returns json
language sql stable set search_path = '' as $$
    select coalesce(json_agg(
        json_build_object('id', u.id, 'name', u.name, 'color', u.avatar_color) order by u.id), '[]')
    from public.users u where u.id <> demo.assistant()
$$;

-- One message as the API shows it: the columns of the table, so that a row from postgres_changes looks the same.
create or replace function demo.message_json(m public.messages) returns json
language sql stable set search_path = '' as $$
    select json_build_object(
        'id', m.id, 'conversation_id', m.conversation_id, 'sender_id', m.sender_id, 'body', m.body,
        'local_id', m.local_id, 'created_at', m.created_at, 'edited_at', m.edited_at)
$$;

-- P0002 unless the caller is in the conversation.
create or replace function demo.must_be_member(conversation uuid) returns void
language plpgsql stable set search_path = '' as $$
begin
    if conversation is null then
        raise null_value_not_allowed using message = 'conversation_id is missing';
    end if;
    if not public.is_member(conversation) then
        raise no_data_found using message = 'no such conversation';
    end if;
end
$$;

-- The caller's conversations, the most recently active first. `unread` and `undelivered` stop counting at 99.
create or replace function demo.conversations() returns json
language sql stable set search_path = '' as $$
    select coalesce(json_agg(json_build_object(
        'id', c.id, 'kind', c.kind, 'title', c.title, 'muted', me.muted,
        'participants', (
            select json_agg(json_build_object(
                'id', u.id, 'name', u.name, 'color', u.avatar_color, 'last_seen', u.last_seen) order by u.name)
            from public.conversation_participants p join public.users u on u.id = p.user_id
            where p.conversation_id = c.id),
        'last_message', (select demo.message_json(m) from public.messages m where m.id = last.id),
        'unread', waiting.unread, 'undelivered', waiting.undelivered
    ) order by coalesce(last.created_at, c.created_at) desc), '[]')
    from public.conversation_participants me
    join public.conversations c on c.id = me.conversation_id
    left join lateral (
        select m.id, m.created_at from public.messages m where m.conversation_id = c.id order by m.id desc limit 1
    ) last on true
    cross join lateral (
        select
            count(*) filter (where r.read_at is null) as unread,
            count(*) filter (where r.message_id is null) as undelivered
        from (
            select m.id, m.sender_id from public.messages m where m.conversation_id = c.id order by m.id desc limit 99
        ) recent
        left join public.read_receipts r on r.message_id = recent.id and r.user_id = auth.uid()
        where recent.sender_id <> auth.uid()
    ) waiting
    where me.user_id = auth.uid()
$$;

-- One page of history in order of id, with the receipts of its messages; `before` is the lowest id already held.
create or replace function demo.messages(conversation uuid, lim int default null, before bigint default null)
returns json language plpgsql stable set search_path = '' as $$
declare
    wanted constant int := least(greatest(coalesce(lim, 50), 1), 200);
begin
    perform demo.must_be_member(conversation);
    return (
        with page as (
            select m.* from public.messages m
            where m.conversation_id = conversation and (before is null or m.id < before)
            order by m.id desc limit wanted
        )
        select json_build_object(
            'messages', coalesce((select json_agg(demo.message_json(m) order by m.id)
                from public.messages m join page using (id)), '[]'),
            'receipts', coalesce((select json_agg(json_build_object('message_id', r.message_id, 'user_id', r.user_id,
                'delivered_at', r.delivered_at, 'read_at', r.read_at))
                from public.read_receipts r join page on page.id = r.message_id), '[]'),
            'more', (select count(*) from page) = wanted)
    );
end
$$;

-- Request {conversation_id, body, local_id}. Sending the same local_id again returns the row of the first time.
create or replace function demo.send(request jsonb) returns json
language plpgsql set search_path = '' as $$
declare
    sent public.messages;
begin
    perform demo.must_be_member((request ->> 'conversation_id')::uuid);
    insert into public.messages (conversation_id, sender_id, body, local_id)
    values ((request ->> 'conversation_id')::uuid, auth.uid(), request ->> 'body', (request ->> 'local_id')::uuid)
    on conflict (sender_id, local_id) do nothing
    returning * into sent;
    if sent.id is null then
        select * into sent from public.messages m
        where m.sender_id = auth.uid() and m.local_id = (request ->> 'local_id')::uuid;
    end if;
    return demo.message_json(sent);
end
$$;

-- Request {conversation_id, up_to_message_id, state: "delivered" | "read"}: marks what others wrote, up to and with
-- that message. Looks at the newest 200 only (nobody looks at older ticks), so that the cost does not grow with the
-- history; writes nothing that is already so, because each write is an event for every member.
create or replace function demo.mark(request jsonb) returns json
language plpgsql set search_path = '' as $$
declare
    conversation constant uuid := (request ->> 'conversation_id')::uuid;
    up_to constant bigint := (request ->> 'up_to_message_id')::bigint;
    seen timestamptz;
    changed int;
begin
    perform demo.must_be_member(conversation);
    if up_to is null then
        raise null_value_not_allowed using message = 'up_to_message_id is missing';
    end if;
    if request ->> 'state' = 'read' then
        seen := now();
        update public.conversation_participants p set last_read_at = seen
        where p.conversation_id = conversation and p.user_id = auth.uid();
    elsif request ->> 'state' is distinct from 'delivered' then
        raise invalid_parameter_value using message = 'state is "delivered" or "read"';
    end if;
    insert into public.read_receipts as r (message_id, user_id, conversation_id, read_at)
    select recent.id, auth.uid(), conversation, seen
    from (
        select m.id, m.sender_id from public.messages m
        where m.conversation_id = conversation and m.id <= up_to order by m.id desc limit 200
    ) recent
    left join public.read_receipts old on old.message_id = recent.id and old.user_id = auth.uid()
    where recent.sender_id <> auth.uid()
        and (old.message_id is null or (seen is not null and old.read_at is null))
    order by recent.id
    on conflict (message_id, user_id) do update set read_at = excluded.read_at
        where r.read_at is null and excluded.read_at is not null;
    get diagnostics changed = row_count;
    return json_build_object('changed', changed);
end
$$;

revoke all on all functions in schema demo from public;
grant execute on function demo.users(), demo.assistant() to service_role;
grant execute on function demo.message_json(public.messages), demo.must_be_member(uuid), demo.conversations(),
    demo.messages(uuid, int, bigint), demo.send(jsonb), demo.mark(jsonb) to authenticated;
