-- Messages that SQL sends to channels: what an insert into realtime.messages writes to the outbox, and its pruning. The
-- table itself is InstallRealtime.sql's, or Supabase's.
--
-- Invariants
--   * Those of Migration002Triggers.sql hold: any role may write, the writer never fails and never waits, every name is
--     qualified, the settings that shape a value's text are pinned.
--   * op 'M', relid is realtime.messages (of a partitioned one the root), record is the row as row_to_json writes it:
--     payload as JSON, binary_payload, where the table has it, as "\\x...". Ordered with the transaction's other changes.
--   * Only rows with extension 'broadcast' count; others are asked of policies, by Supabase's own server, and rolled
--     back.
--   * realtime.send and realtime.send_binary refuse payloads over 3,000,000 bytes. A larger one that was inserted past
--     them is written without its payload and with reduced set, and its writer gets a WARNING: no client gets it, and
--     nobody is left to guess.
--   * The columns that on_message reads by name are those InstallMessageTrigger.sql has made sure of.
-- Lock order: outbox row, then (1919905651, doorbell) shared, tried only. Nothing is waited for.

alter table roost.meta add column owns_messages boolean not null default false;
comment on column roost.meta.owns_messages is
    'realtime.messages was made by roost, whose hubs therefore delete its rows after their retention.';
comment on column roost.change.op is 'Insert, Update, Delete, Message (of realtime.messages), Truncate.';
comment on column roost.change.reduced is
    'The row was over 1 MiB; only its values of up to 64 bytes were kept. Of a message: its payload was over 3,000,000 '
    'bytes and was not kept.';

create function roost.on_message() returns trigger
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
            case when large then pg_catalog.json_build_object(
                'topic', record operator(pg_catalog.->) 'topic',
                'extension', record operator(pg_catalog.->) 'extension',
                'event', record operator(pg_catalog.->) 'event', 'private', record operator(pg_catalog.->) 'private',
                'id', record operator(pg_catalog.->) 'id')
            else record end
        from (
            select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 3000000 and greatest(
                pg_catalog.octet_length(record operator(pg_catalog.->>) 'payload'),
                pg_catalog.octet_length(record operator(pg_catalog.->>) 'binary_payload')
                    operator(pg_catalog.-) 2 operator(pg_catalog./) 2
            ) operator(pg_catalog.>) 3000000 as large
            from (
                select pg_catalog.row_to_json(n.*) as record from roost_new n
                where n.extension operator(pg_catalog.=) 'broadcast' offset 0
            ) rows
        ) sized
        returning reduced
    )
    select pg_catalog.count(*), pg_catalog.count(*) filter (where reduced) into sent, too_large from written;
    if sent operator(pg_catalog.>) 0 and roost.must_ring() then
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
revoke execute on function roost.on_message() from public;

-- Deletes up to 5,000 messages older than the retention (seconds), where realtime.messages is roost's own, and returns
-- how many; 5,000 means that there may be more. Runs with its caller's rights.
-- Locks: the rows it deletes; it skips what another hub is deleting.
create function roost.prune_messages(retention double precision) returns bigint
    language plpgsql
    set search_path = pg_catalog, pg_temp
as $$
declare
    deleted bigint;
begin
    if not (select owns_messages from roost.meta) then
        return 0;
    end if;
    with oldest as materialized (
        select id, inserted_at from realtime.messages
        where inserted_at < clock_timestamp() at time zone 'UTC' - make_interval(secs => retention)
        order by inserted_at limit 5000 for update skip locked
    )
    delete from realtime.messages m using oldest o where m.id = o.id and m.inserted_at = o.inserted_at;
    get diagnostics deleted = row_count;
    return deleted;
exception when undefined_table or invalid_schema_name then
    return 0;
end
$$;
