-- Broadcasts that clients ask to be kept (supabase/realtime PR 2022): rows of realtime.messages that have been broadcast already, and
-- rows that expire.
--
-- Invariants
--   * A row with skip_broadcast is not broadcast by roost.on_message, whoever wrote it. Tables of older Supabases have no such column,
--     so it is read from the row as JSON, as binary_payload is.
--   * The columns are those of Supabase's own table. Where realtime.messages is Supabase's, nothing of it is changed.
--   * Rows that have expired are no part of a replay (Authority.sql), and where the table is roost's own they are deleted within a
--     minute or so, by the batches that end its retention.
-- Locks: ACCESS EXCLUSIVE on realtime.messages for a moment, where it is roost's own; nothing is rewritten. The index is built under it.
do $$
begin
    if (select owns_messages from roost.meta) and to_regclass('realtime.messages') is not null then
        alter table realtime.messages
            add column if not exists skip_broadcast boolean not null default false,
            add column if not exists expires_at timestamp;
        create index if not exists messages_expiry on realtime.messages (expires_at) where expires_at is not null;
    end if;
exception when insufficient_privilege then
    raise notice 'roost: broadcasts cannot be kept, as % may not add columns to realtime.messages', current_user
        using hint = 'Run `roost migrate` as the owner of the table.';
end
$$;

-- As in Migration011Rows.sql, without the rows that have been broadcast.
create or replace function roost.on_message() returns trigger
    language plpgsql security definer
as $$
declare
    before pg_catalog.text[];
    sent pg_catalog.int8;
    too_large pg_catalog.int8;
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    -- A record counts bytes of hexadecimal digits for a binary payload, hence the second look.
    with written as (
        insert into roost.change (relid, op, reduced, record)
        select
            coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'M', large,
            case when large and not huge then pg_catalog.json_build_object(
                'topic', record operator(pg_catalog.->) 'topic',
                'extension', record operator(pg_catalog.->) 'extension',
                'event', record operator(pg_catalog.->) 'event', 'private', record operator(pg_catalog.->) 'private',
                'id', record operator(pg_catalog.->) 'id')
            else record end
        from (
            select huge, record, huge or pg_catalog.pg_column_size(record) operator(pg_catalog.>) 3000000 and greatest(
                pg_catalog.octet_length(record operator(pg_catalog.->>) 'payload'),
                pg_catalog.octet_length(record operator(pg_catalog.->>) 'binary_payload')
                    operator(pg_catalog.-) 2 operator(pg_catalog./) 2
            ) operator(pg_catalog.>) 3000000 as large
            from (
                select huge, case when huge then pg_catalog.json_build_object(
                    'topic', topic, 'extension', extension, 'event', event, 'private', private, 'id', id)
                    else row end as record
                from (
                    select pg_catalog.pg_column_size(n.*) operator(pg_catalog.>) 33554432 as huge,
                        case when pg_catalog.pg_column_size(n.*) operator(pg_catalog.<=) 33554432
                            then pg_catalog.row_to_json(n.*) end as row,
                        n.topic, n.extension, n.event, n.private, n.id
                    from roost_new n
                    where n.extension operator(pg_catalog.=) 'broadcast' offset 0
                ) written_rows
                where huge or (row operator(pg_catalog.->>) 'skip_broadcast') is distinct from 'true'
            ) rows
        ) sized
        returning reduced
    )
    select pg_catalog.count(*), pg_catalog.count(*) filter (where reduced) into sent, too_large from written;
    if sent operator(pg_catalog.>) 0 and roost.must_ring() and roost.may_notify() then
        perform pg_catalog.pg_notify('roost', '');
    end if;
    if before is not null then
        perform roost.unpin(before);
    end if;
    if too_large operator(pg_catalog.>) 0 then
        raise warning 'roost: % of these messages have a payload over 3,000,000 bytes and reach no client', too_large
            using hint = 'Store what is large, and send its key.';
    end if;
    return null;
end
$$;

-- Deletes up to 5,000 messages that are older than the retention (seconds) or have expired, where realtime.messages is roost's own, and
-- returns how many; 5,000 means that there may be more. Runs with its caller's rights.
-- Locks: the rows it deletes; it skips what another hub is deleting.
create or replace function roost.prune_messages(retention double precision) returns bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp
as $$
declare
    now_utc constant timestamp := clock_timestamp() at time zone 'UTC';
    deleted bigint;
    expired bigint;
begin
    if not (select owns_messages from roost.meta) then
        return 0;
    end if;
    with oldest as materialized (
        select id, inserted_at from realtime.messages
        where inserted_at < now_utc - make_interval(secs => retention)
        order by inserted_at limit 5000 for update skip locked
    )
    delete from realtime.messages m using oldest o where m.id = o.id and m.inserted_at = o.inserted_at;
    get diagnostics deleted = row_count;
    with due as materialized (
        select id, inserted_at from realtime.messages
        where expires_at is not null and expires_at <= now_utc
        order by expires_at limit 5000 - deleted for update skip locked
    )
    delete from realtime.messages m using due d where m.id = d.id and m.inserted_at = d.inserted_at;
    get diagnostics expired = row_count;
    return deleted + expired;
exception when undefined_table or invalid_schema_name then
    return 0;
end
$$;
