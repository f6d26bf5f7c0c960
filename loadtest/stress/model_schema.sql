-- What the model check writes to: four tables that differ in who sees a row and in what is known of a row that is gone, and
-- the record that the verdict rests on.
--
-- Invariants
--   * model.log has one row for each committed version of each row, written by a row trigger in the same transaction: what
--     became of a writer's connection at its commit does not matter.
--   * A version is drawn anew for each write, so that no two writes of the tables have the same one.
--   * Keys are few: what was deleted comes again under the same key.
create schema model;
create sequence model.version;

create table model.log (
    number bigint generated always as identity primary key,
    place text not null,
    event text not null,
    old jsonb,
    new jsonb,
    transaction xid8 not null default pg_current_xact_id()
);

create function model.stamp() returns trigger language plpgsql as $$
begin
    new.version := nextval('model.version');
    return new;
end
$$;

create function model.record() returns trigger language plpgsql as $$
begin
    insert into model.log (place, event, old, new) values (
        tg_argv[0], tg_op, case when tg_op <> 'INSERT' then to_jsonb(old) end, case when tg_op <> 'DELETE' then to_jsonb(new) end);
    return null;
end
$$;

-- What a table has besides its columns, for one that takes its place, too.
create function model.furnish(place text) returns void language plpgsql as $$
begin
    execute format('create trigger stamp before insert or update on public.%I for each row execute function model.stamp()', place);
    execute format('create trigger zz_record after insert or update or delete on public.%I for each row '
        'execute function model.record(%L)', place, place);
    execute format('grant select on public.%I to anon, authenticated', place);
    if place <> 'events' then
        execute format('alter table public.%I enable row level security', place);
    end if;
    if place in ('messages', 'posts') then
        execute format('alter table public.%I replica identity full', place);
    end if;
    if place = 'messages' then
        create policy readers on public.messages for select to authenticated using (exists (
            select from public.members m where m.room = messages.room and m.member = model.me()));
    elsif place = 'notes' then
        create policy readers on public.notes for select to authenticated using (owner = model.me());
    elsif place = 'posts' then
        create policy readers on public.posts for select to anon, authenticated using (is_public or owner = model.me());
    end if;
end
$$;

create function model.me() returns uuid language sql stable as $$
    select nullif(current_setting('request.jwt.claim.sub', true), '')::uuid
$$;
grant usage on schema model to anon, authenticated;

create table public.members (room int, member uuid, primary key (room, member));
create index on public.members (member);
alter table public.members enable row level security;
create policy own on public.members for select to authenticated using (member = model.me());
grant select on public.members to authenticated;
create trigger zz_record after insert or update or delete on public.members for each row
    execute function model.record('members');

create table public.messages (id int primary key, room int not null, n int, tag text, body text, version bigint);
create table public.notes (id int primary key, owner uuid not null, n int, body text, version bigint);
create table public.posts (id int primary key, owner uuid not null, is_public bool not null, kind text not null, n int, version bigint);
create table public.events (part int, id int, n int, body text, version bigint, primary key (part, id)) partition by list (part);
create table public.events_0 partition of public.events for values in (0);
create table public.events_1 partition of public.events for values in (1);
select model.furnish(place) from unnest(array['messages', 'notes', 'posts', 'events']) place;
