-- Supabase's `realtime` schema for a database without one: the table that SQL sends messages through and that the
-- policies of private channels are written on, and the functions an application calls. Run by every `roost migrate`.
--
-- Invariants
--   * Where realtime.messages exists and is not roost's, nothing in that schema is touched.
--   * What exists is never replaced, and what this role may not create is left out with a NOTICE (`roost doctor`
--     reports it): a migration does not fail over it.
--   * Policies alone decide. So the grants are to public: row level security without a policy denies everything, and
--     roles that are created later need nothing more. There is no UPDATE or DELETE for anybody.
--   * inserted_at is UTC whatever the writer's time zone is, and the time of the insert, not of its transaction, so
--     that the messages of one transaction are replayed in their order.
--   * send and send_binary never fail their caller: what goes wrong is a WARNING. They run with the caller's rights.
--   * Nothing here has a SET clause, hence every name is qualified.
-- Locks: none on what exists.
do $install$
declare
    realtime oid := (select oid from pg_catalog.pg_namespace where nspname = 'realtime');
    messages oid := (select oid from pg_catalog.pg_class where relnamespace = realtime and relname = 'messages');
    functions name[] := (select array_agg(proname) from pg_catalog.pg_proc where pronamespace = realtime);
begin
    if messages is not null and not (select owns_messages from roost.meta) then
        return;
    end if;
    if not (case
        when realtime is null then has_database_privilege(current_database(), 'create')
        else has_schema_privilege(realtime, 'create') and has_schema_privilege(realtime, 'usage')
    end) then
        raise notice 'roost: % may not create the schema realtime, so SQL cannot send to channels', current_user
            using hint = 'Run `roost migrate` again as a role that may.';
        return;
    end if;

    if realtime is null then
        create schema realtime;
        grant usage on schema realtime to public;
    end if;
    if messages is null then
        create table realtime.messages (
            topic text not null,
            extension text not null,
            payload jsonb,
            event text,
            private boolean default false,
            updated_at timestamp not null default (clock_timestamp() at time zone 'UTC'),
            inserted_at timestamp not null default (clock_timestamp() at time zone 'UTC'),
            id uuid not null default gen_random_uuid(),
            binary_payload bytea,
            skip_broadcast boolean not null default false,
            expires_at timestamp,
            primary key (id, inserted_at),
            constraint messages_payload_exclusive check (payload is null or binary_payload is null)
        );
        comment on table realtime.messages is
            'What realtime.send() sends to channels, kept for the retention of the hub; its policies say who may read '
            'and write which private channel.';
        -- The first replays a channel, the others find what to delete.
        create index messages_replay on realtime.messages (topic, inserted_at desc)
            where extension = 'broadcast' and private is true;
        create index messages_age on realtime.messages (inserted_at);
        create index messages_expiry on realtime.messages (expires_at) where expires_at is not null;
        alter table realtime.messages enable row level security;
        grant select, insert on realtime.messages to public;
        update roost.meta set owns_messages = true;
    end if;

    -- The channel that a policy is asked about, without the prefix "realtime:".
    if 'topic' = any (functions) is not true then
        create function realtime.topic() returns text language sql stable as $$
            select nullif(pg_catalog.current_setting('realtime.topic', true), '')
        $$;
    end if;

    if 'send' = any (functions) is not true then
        create function realtime.send(payload jsonb, event text, topic text, private boolean default true) returns void
        language plpgsql as $$
        declare
            id constant pg_catalog.uuid := pg_catalog.gen_random_uuid();
            message pg_catalog.jsonb := payload;
        begin
            if pg_catalog.jsonb_typeof(payload) operator(pg_catalog.=) 'object' is not true then
                raise exception 'the payload must be a JSON object';
            end if;
            if not message operator(pg_catalog.?) 'id' then
                message := message operator(pg_catalog.||) pg_catalog.jsonb_build_object('id', id);
            end if;
            if pg_catalog.octet_length(message::pg_catalog.text) operator(pg_catalog.>) 3000000 then
                raise exception 'the payload is over 3,000,000 bytes';
            end if;
            perform pg_catalog.set_config('realtime.topic', topic, true);
            insert into realtime.messages (id, payload, event, topic, private, extension)
            values (id, message, event, topic, private, 'broadcast');
        exception when others then
            raise warning 'WarnSendingBroadcastMessage: %', sqlerrm;
        end
        $$;
    end if;

    if 'send_binary' = any (functions) is not true then
        create function realtime.send_binary(payload bytea, event text, topic text, private boolean default true)
        returns void language plpgsql as $$
        begin
            if payload is null then
                raise exception 'the payload is null';
            end if;
            if pg_catalog.octet_length(payload) operator(pg_catalog.>) 3000000 then
                raise exception 'the payload is over 3,000,000 bytes';
            end if;
            perform pg_catalog.set_config('realtime.topic', topic, true);
            insert into realtime.messages (binary_payload, event, topic, private, extension)
            values (payload, event, topic, private, 'broadcast');
        exception when others then
            raise warning 'WarnSendingBroadcastMessage: %', sqlerrm;
        end
        $$;
    end if;

    -- For row triggers: sends what happened to a row. Unlike send, it fails its caller where it is called wrongly.
    -- Before Postgres 14 a statement of PL/pgSQL keeps the row types of its first execution, so that an UPDATE after an
    -- INSERT, or a second table, would fail its writer; a polymorphic function is compiled for each type by itself.
    if 'broadcast_changes' = any (functions) is not true then
        execute format($create$
            create function realtime.broadcast_changes(
                topic_name text, event_name text, operation text, table_name text, table_schema text,
                new %1$s, old %1$s, level text default 'ROW'
            ) returns void language plpgsql as $$
            begin
                if level operator(pg_catalog.=) 'STATEMENT' then
                    raise exception 'realtime.broadcast_changes is for row triggers; create this one FOR EACH ROW';
                end if;
                if operation operator(pg_catalog.=) any (array['INSERT', 'UPDATE', 'DELETE']) is not true then
                    raise exception 'realtime.broadcast_changes sends INSERT, UPDATE and DELETE, not %%', operation;
                end if;
                perform realtime.send(
                    pg_catalog.jsonb_build_object(
                        'old_record', old, 'record', new, 'operation', operation,
                        'table', table_name, 'schema', table_schema),
                    event_name, topic_name);
            end
            $$
            $create$, case when current_setting('server_version_num')::int < 140000 then 'anyelement' else 'record' end);
    end if;
end
$install$;
