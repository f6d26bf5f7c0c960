-- What the stress run writes to: a chat reduced to its bones, and the record that the verdict rests on.
--
-- Invariants
--   * stress.log has one row for each committed version of each row of messages, written by a row trigger in the same
--     transaction, so that it tells the truth whatever happened to a writer's connection at its commit.
--   * version grows by one with each change of a row; a DELETE has the version after the last.
--   * body starts with "id.version ", so that a record can be seen to belong to its version.
--   * Replica identity FULL: a DELETE can be filtered by conversation.
create schema stress;

create table public.members (
    conversation_id int not null,
    user_id uuid not null,
    primary key (conversation_id, user_id)
);
create index on public.members (user_id);

create table public.messages (
    id bigint generated always as identity primary key,
    conversation_id int not null,
    writer int not null,
    number int not null,
    version int not null default 1,
    body text
);
alter table public.messages replica identity full;

create function public.my_conversations() returns setof int
language plpgsql stable security definer set search_path = '' as $$
begin
    return query select m.conversation_id from public.members m
        where m.user_id = nullif(current_setting('request.jwt.claim.sub', true), '')::uuid;
end
$$;

alter table public.members enable row level security;
alter table public.messages enable row level security;
create policy "members read" on public.messages for select to authenticated
    using (conversation_id in (select public.my_conversations()));
create policy "members see members" on public.members for select to authenticated
    using (conversation_id in (select public.my_conversations()));
grant select on public.members, public.messages to authenticated;

create table stress.log (
    number bigint generated always as identity primary key,
    identity bigint not null,
    version int not null,
    event text not null,
    conversation int not null,
    transaction xid8 not null default pg_current_xact_id(),
    at timestamptz not null default clock_timestamp()
);

create function stress.describe() returns trigger language plpgsql as $$
begin
    new.version := case tg_op when 'INSERT' then 1 else old.version + 1 end;
    new.body := new.id || '.' || new.version || ' '
        || repeat('x', case when new.id % 20 = 0 then 8000 else 20 + (new.id % 200)::int end);
    return new;
end
$$;
create trigger describe before insert or update on public.messages for each row execute function stress.describe();

create function stress.record() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into stress.log (identity, version, event, conversation)
        values (old.id, old.version + 1, tg_op, old.conversation_id);
    else
        insert into stress.log (identity, version, event, conversation)
        values (new.id, new.version, tg_op, new.conversation_id);
    end if;
    return null;
end
$$;
create trigger record after insert or update or delete on public.messages for each row execute function stress.record();
