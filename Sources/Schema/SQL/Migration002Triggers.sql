-- What a watched table runs: one function per operation, called once per statement with its transition tables.
--
-- Invariants
--   * Any role may write a watched table: the functions run as their owner, and need nothing of the writer.
--     Nobody but the owner may attach them (EXECUTE is revoked), else any role could fill the outbox.
--   * A table's own casts to json run as the owner too: watch only tables of roles that roost's owner trusts.
--   * No SET clause on them: five cost 23 us of CPU per transaction, more than the outbox row itself. Hence every name,
--     operators too, is qualified (the writer's search_path is not to be trusted), and the settings that shape a
--     value's text are looked at, and changed only for the writer whose are others (roost.pin), so that a row reads
--     the same whoever wrote it.
--   * A writer never fails and never waits here: locks are only tried, and a row too large is reduced.
--   * The doorbell: for each hub the writer either holds the hub's advisory lock shared until he has committed (then
--     the hub is awake, or waits for that lock and looks again when it has it), or he rings. The notification carries
--     nothing.
--   * n.*, not n: a bare n would be the column n of a table that has one.
-- Lock order: outbox row, then (1919905651, doorbell) shared, tried only. Nothing is waited for.

-- Whether a writer has to ring; tries the locks. roost.on_node writes its body anew when hubs come and go: reading
-- roost.node in every statement costs 9 us.
create function roost.must_ring() returns boolean language sql volatile as 'select false';

-- Lock order: advisory lock (1919905650, 0) first, so that two hubs that come at once do not replace the function at
-- the same time.
create function roost.on_node() returns trigger
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform pg_advisory_xact_lock(1919905650, 0);
    execute 'create or replace function roost.must_ring() returns boolean language sql volatile as ' || quote_literal(
        'select not (' || coalesce((
            select string_agg(format('pg_catalog.pg_try_advisory_xact_lock_shared(1919905651, %s)', doorbell),
                ' and ' order by doorbell)
            from roost.node
        ), 'true') || ')');
    return null;
end
$$;
create trigger node after insert or delete on roost.node for each row execute function roost.on_node();

create function roost.reduced(record json) returns json
    language plpgsql immutable
    set search_path = pg_catalog, pg_temp
as $$
begin
    -- A json column may hold \u0000, which json_each refuses to read.
    return (
        select coalesce(json_object_agg(key, value), '{}')
        from json_each(replace(record::text, '\u0000', '\ufffd')::json)
        where octet_length(value::text) <= 64
    );
exception when others then
    -- A lone surrogate in a json column: better a change without values than a writer who fails.
    return '{}';
end
$$;

create function roost.is_pinned() returns boolean language sql stable as $$
    select pg_catalog.current_setting('TimeZone') operator(pg_catalog.=) any ('{UTC,Etc/UTC,GMT}'::pg_catalog.text[])
        and pg_catalog.current_setting('bytea_output') operator(pg_catalog.=) 'hex'
        and pg_catalog.current_setting('IntervalStyle') operator(pg_catalog.=) 'postgres'
        and pg_catalog.current_setting('extra_float_digits')::pg_catalog.int4 operator(pg_catalog.>) 0
$$;

-- Sets the settings, for this transaction at most, and returns what they were. Where the statement fails in between,
-- Postgres takes them back itself.
create function roost.pin() returns text[] language plpgsql as $$
declare
    before text[] := array[
        pg_catalog.current_setting('TimeZone'), pg_catalog.current_setting('bytea_output'),
        pg_catalog.current_setting('IntervalStyle'), pg_catalog.current_setting('extra_float_digits')];
begin
    perform roost.unpin('{UTC,hex,postgres,1}');
    return before;
end
$$;

create function roost.unpin(settings text[]) returns void language plpgsql as $$
begin
    perform pg_catalog.set_config('TimeZone', settings[1], true);
    perform pg_catalog.set_config('bytea_output', settings[2], true);
    perform pg_catalog.set_config('IntervalStyle', settings[3], true);
    perform pg_catalog.set_config('extra_float_digits', settings[4], true);
end
$$;

-- 1048580: a value of 1 MiB (1,048,576 bytes) and the four bytes in which Postgres keeps its length.
create function roost.on_insert() returns trigger
    language plpgsql security definer
as $$
declare
    before pg_catalog.text[];
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    insert into roost.change (relid, op, reduced, record)
    select
        coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'I', large,
        case when large then roost.reduced(record) else record end
    from (
        select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 1048580 as large
        from (select pg_catalog.row_to_json(n.*) as record from roost_new n offset 0) rows
    ) sized;
    if found and roost.must_ring() then
        perform pg_catalog.pg_notify('roost', '');
    end if;
    if before is not null then
        perform roost.unpin(before);
    end if;
    return null;
end
$$;

create function roost.on_delete() returns trigger
    language plpgsql security definer
as $$
declare
    before pg_catalog.text[];
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    insert into roost.change (relid, op, reduced, old_record)
    select
        coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'D', large,
        case when large then roost.reduced(record) else record end
    from (
        select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 1048580 as large
        from (select pg_catalog.row_to_json(o.*) as record from roost_old o offset 0) rows
    ) sized;
    if found and roost.must_ring() then
        perform pg_catalog.pg_notify('roost', '');
    end if;
    if before is not null then
        perform roost.unpin(before);
    end if;
    return null;
end
$$;

-- The two transition tables list the same rows in the same order; that is the only thing that pairs them, as a key
-- may be missing or be what the statement changed. FULL, so that a row without its partner is not lost.
create function roost.on_update() returns trigger
    language plpgsql security definer
as $$
declare
    before pg_catalog.text[];
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    insert into roost.change (relid, op, reduced, record, old_record)
    select
        coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'U', large,
        case when large then roost.reduced(record) else record end,
        case when large then roost.reduced(old_record) else old_record end
    from (
        select
            coalesce(n.place, o.place) as place, record, old_record,
            greatest(pg_catalog.pg_column_size(record), pg_catalog.pg_column_size(old_record))
                operator(pg_catalog.>) 1048580 as large
        from (
            select pg_catalog.row_number() over () as place, pg_catalog.row_to_json(n.*) as record from roost_new n
        ) n
        full join (
            select pg_catalog.row_number() over () as place, pg_catalog.row_to_json(o.*) as old_record from roost_old o
        ) o on n.place operator(pg_catalog.=) o.place
    ) paired
    order by place;
    if found and roost.must_ring() then
        perform pg_catalog.pg_notify('roost', '');
    end if;
    if before is not null then
        perform roost.unpin(before);
    end if;
    return null;
end
$$;

revoke execute on function
    roost.on_insert(), roost.on_update(), roost.on_delete(), roost.on_node(), roost.must_ring(), roost.reduced(json),
    roost.is_pinned(), roost.pin(), roost.unpin(text[])
from public;
