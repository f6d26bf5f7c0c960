-- Notifications that a backend wants sent.
--
-- Invariants
--   * roost.notify writes a change of the operation 'N' into the outbox, in its caller's transaction: hubs read it where they read rows,
--     in its place among them, or never, as the transaction rolls back. What is sent to whom is in roost.alert, as of messages.
--   * record of an 'N' is the notification, with its id. message of its alerts is 'notify:' and that id: of one id and user there is one
--     alert, however often it is written.
--   * Only hubs and service_role may call it: its caller may tell every user anything. It fails its caller where it is called wrongly, as
--     nobody could be told later.
-- Lock order: as in SchemaTriggers.sql.

-- The sentence that is wrong with a notification; null where it is one. Whether its push has room for it is for hubs to see.
create function roost.notification_problem(notification jsonb) returns text
    language plpgsql immutable
    set search_path = pg_catalog, pg_temp
as $$
declare
    users jsonb := coalesce(
        nullif(notification -> 'userIds', 'null'), jsonb_build_array(nullif(notification -> 'userId', 'null')));
begin
    if jsonb_typeof(notification) is distinct from 'object' then
        return 'A notification is a JSON object, such as {"userId": "...", "title": "..."}.';
    end if;
    if octet_length(notification::text) > 65536 then
        return 'A notification may have 65536 bytes at most.';
    end if;
    notification := jsonb_strip_nulls(notification - 'data' - 'audience') || jsonb_strip_nulls(
        jsonb_build_object('data', nullif(notification -> 'data', 'null'), 'audience', nullif(notification -> 'audience', 'null')));
    if (select count(*) from jsonb_object_keys(notification) k where k in ('userId', 'userIds', 'audience')) <> 1 then
        return 'Say to whom it goes by one of userId, userIds and audience.';
    end if;
    if notification ? 'audience' then
        if jsonb_typeof(notification #> '{audience,record}') is distinct from 'object'
            or coalesce(notification #>> '{audience,table}', '') !~ '^[^.]+\.[^.]+$' then
            return 'audience is not an object with a table and a record.';
        end if;
    elsif (case when jsonb_typeof(users) = 'array' then jsonb_array_length(users) not between 1 and 1000 else true end) then
        return 'userIds is not a list of 1 to 1000 users.';
    elsif exists (
        select from jsonb_array_elements(users) u
        where jsonb_typeof(u) is distinct from 'string' or octet_length(u #>> '{}') not between 1 and 1000
    ) then
        return 'A user is not a text of 1 to 1000 bytes.';
    end if;
    if exists (
        select from jsonb_each(notification) n
        where n.key in (
                'id', 'title', 'subtitle', 'body', 'conversationId', 'sound', 'category', 'interruptionLevel', 'collapseId', 'when')
            and (jsonb_typeof(n.value) <> 'string' or n.value = '""' and n.key <> 'sound'
                or octet_length(n.value #>> '{}') > case
                    when n.key = 'id' then 200 when n.key in ('title', 'subtitle', 'body') then 16384 else 1000 end)
    ) then
        return 'A text of the notification is none, is empty, or is too long.';
    end if;
    if not notification ?| '{title,body}' then
        return 'title or body is missing: a notification says something.';
    end if;
    if notification ? 'data' and (
        jsonb_typeof(notification -> 'data') <> 'object' or octet_length((notification -> 'data')::text) > 3500
        or notification -> 'data' ?| '{aps,conversationId,messageId,notificationId}'
    ) then
        return 'data is no JSON object of 3500 bytes at most, or has one of the fields that the hub itself writes.';
    end if;
    if coalesce(notification ->> 'when', 'unseen') not in ('always', 'unseen', 'unreceived') then
        return 'when is none of always, unseen, unreceived.';
    end if;
    if coalesce(notification ->> 'interruptionLevel', 'active') not in ('passive', 'active', 'critical', 'time-sensitive') then
        return 'interruptionLevel is none of passive, active, critical, time-sensitive.';
    end if;
    -- The casts are behind the looks at the types: a CASE keeps them there.
    if (case coalesce(jsonb_typeof(notification -> 'badge'), '')
        when 'number' then (notification ->> 'badge') !~ '^[0-9]{1,9}$' when '' then false else true end) then
        return 'badge is not a whole number from 0 to 999999999.';
    end if;
    if (case coalesce(jsonb_typeof(notification -> 'relevanceScore'), '')
        when 'number' then (notification ->> 'relevanceScore')::numeric not between 0 and 1 when '' then false else true end) then
        return 'relevanceScore is not a number from 0 to 1.';
    end if;
    return null;
end
$$;

-- Has users notified once the transaction commits, and returns the notification's id. docs/push.md has what it takes.
create function roost.notify(notification jsonb) returns text
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    problem constant text := roost.notification_problem(notification);
    id constant text := coalesce(notification ->> 'id', gen_random_uuid()::text);
begin
    if problem is not null then
        raise exception 'roost.notify: %', problem using errcode = 'invalid_parameter_value';
    end if;
    insert into roost.change (relid, op, record)
    values ('roost.alert'::regclass, 'N', (notification || jsonb_build_object('id', id))::json);
    if roost.must_ring() and roost.may_notify() then
        perform pg_notify('roost', '');
    end if;
    return id;
end
$$;

revoke all on function roost.notify(jsonb), roost.notification_problem(jsonb) from public;
do $$
begin
    -- It can do everything else, too.
    if exists (select from pg_roles where rolname = 'service_role') then
        grant usage on schema roost to service_role;
        grant execute on function roost.notify(jsonb) to service_role;
    end if;
end
$$;
