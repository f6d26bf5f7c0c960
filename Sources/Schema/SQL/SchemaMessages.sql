-- Messages that SQL sends to channels: what an insert into realtime.messages writes to the outbox, and its pruning. The table itself is
-- InstallRealtime.sql's, or Supabase's.
--
-- Invariants
--   * Those of SchemaTriggers.sql hold: any role may write, the writer never fails and never waits, every name is qualified, the settings
--     that shape a value's text are pinned.
--   * op 'M', relid is realtime.messages (of a partitioned one the root), record is the row as row_to_json writes it: payload as JSON,
--     binary_payload, where the table has it, as "\\x...". Ordered with the transaction's other changes.
--   * Only rows with extension 'broadcast' count; others are asked of policies, by Supabase's own server, and rolled back.
--   * A row with skip_broadcast is not broadcast, whoever wrote it: it has been already, and is kept because its client asked for that
--     (supabase/realtime PR 2022). Tables of older Supabases have no such column, so it is read from the row as JSON, as binary_payload
--     is.
--   * Rows that have expired are no part of a replay (Authority.sql), and where the table is roost's own they are deleted within a minute
--     or so, by the batches that end its retention.
--   * realtime.send and realtime.send_binary refuse payloads over 3,000,000 bytes. A larger one that was inserted past them is written
--     without its payload and with reduced set, and its writer gets a WARNING: no client gets it, and nobody is left to guess. A row of
--     more than 32 MiB has a payload over the limit: jsonb takes at most eight times the room of its text.
--   * The columns that on_message reads by name are those InstallMessageTrigger.sql has made sure of.
-- Lock order: outbox row, then (1919905651, doorbell) shared, tried only. Nothing is waited for.

-- A message's JSON. A column that somebody added may have a value without JSON, which is a text then; a message that has none even so is
-- not delivered, and its writer goes on.
create function roost.message_row("row" record, messages oid) returns json
    language plpgsql volatile
as $$
declare
    made pg_catalog.json;
begin
    return pg_catalog.row_to_json("row");
exception when others or assert_failure then
    begin
        execute (
            select pg_catalog.format('select pg_catalog.row_to_json(v.*) from (select %s from (select ($1::%s).*) r) v',
                pg_catalog.string_agg(pg_catalog.format('roost.value_as_json(r.%1$I) as %1$I', a.attname), ', '
                    order by a.attnum), messages::pg_catalog.regclass)
            from pg_catalog.pg_attribute a
            where a.attrelid operator(pg_catalog.=) messages and a.attnum operator(pg_catalog.>) 0 and not a.attisdropped
        ) into made using "row"::pg_catalog.text;
        return made;
    exception when others or assert_failure then
        return null;
    end;
end
$$;

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
                            then roost.message_row(n.*, tg_relid) end as row,
                        n.topic, n.extension, n.event, n.private, n.id
                    from roost_new n
                    where n.extension operator(pg_catalog.=) 'broadcast' offset 0
                ) written_rows
                where huge or row is not null and (row operator(pg_catalog.->>) 'skip_broadcast') is distinct from 'true'
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
create function roost.prune_messages(retention double precision) returns bigint
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

revoke execute on function roost.message_row(record, oid), roost.on_message() from public;
