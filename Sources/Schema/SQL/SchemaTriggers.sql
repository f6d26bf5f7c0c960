-- What a watched table runs: one function per operation, called once per statement with its transition tables.
--
-- Invariants
--   * Any role may write a watched table: the functions run as their owner, and need nothing of the writer. Nobody but the owner may
--     attach them (EXECUTE is revoked), else any role could fill the outbox.
--   * A table's own casts to json run as the owner too: watch only tables of roles that roost's owner trusts.
--   * No SET clause on them: five cost 23 us of CPU per transaction, more than the outbox row itself. Hence every name, operators too, is
--     qualified (the writer's search_path is not to be trusted), and the settings that shape a value's text are looked at, and changed
--     only for the writer whose are others (roost.pin).
--   * A writer never fails and never waits here: locks are only tried, and a row too large is reduced.
--   * n.*, not n: a bare n would be the column n of a table that has one.
--   * on_truncate writes one row (op 'T', without a record) for each table that was emptied; of a partitioned one each partition counts,
--     all under the root's oid.
--   * Where a table moves rows between partitions, a BEFORE trigger of the new one may skip a row, which then is in the old transition
--     table alone, and everything behind it would be paired with its neighbour. Where the tables differ in length, rows are paired by the
--     primary key, and what finds no partner is a DELETE or an INSERT.
-- Lock order: outbox row, then (1919905651, doorbell) shared, tried only. Nothing is waited for.

-- 1048580: a value of 1 MiB (1,048,576 bytes) and the four bytes in which Postgres keeps its length.
create function roost.on_insert() returns trigger
    language plpgsql security definer
as $$
<<own>>
declare
    before pg_catalog.text[];
    mark pg_catalog.int8;
    watched constant pg_catalog.oid := coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid);
    need constant pg_catalog.int4 := roost.text_need(watched);
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 1
        or pg_catalog.current_setting('roost.nested', true) operator(pg_catalog.<>) ''
    then
        mark := pg_catalog.nextval('roost.change_id_seq');
    end if;
    if need operator(pg_catalog.=) 0 then
        insert into roost.change (relid, op, reduced, record)
        select watched, 'I', coalesce(large, true), case when large then roost.reduced(record) else record end
        from (
            select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 1048580 as large
            from (
                select case when pg_catalog.pg_column_size(n.*) operator(pg_catalog.<=) 524288
                    then roost.guarded(n.*) else roost.too_large() end as record
                from roost_new n offset 0
            ) rows
        ) sized;
    else
        insert into roost.change (relid, op, reduced, record, row_text)
        select
            watched, 'I', coalesce(large, true), case when large then roost.reduced(record) else record end,
            case when large then null else exact end
        from (
            select (made).record, (made).exact,
                pg_catalog.pg_column_size((made).record) operator(pg_catalog.>) 1048580 as large
            from (select roost.exact_row(n.*, own.need) as made from roost_new n offset 0) rows
            offset 0
        ) sized;
    end if;
    if found then
        if pg_catalog.current_setting('roost.large', true) operator(pg_catalog.=) 'true' then
            perform pg_catalog.set_config('roost.large', '', true);
            begin
                execute roost.large_statement(tg_relid, 'n');
            exception when others or assert_failure then
                perform roost.note_losses();
            end;
        end if;
        if mark is not null then
            perform roost.settle(watched, 'I', mark);
        end if;
        if roost.must_ring() and roost.may_notify() then
            perform pg_catalog.pg_notify('roost', '');
        end if;
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
<<own>>
declare
    before pg_catalog.text[];
    mark pg_catalog.int8;
    watched constant pg_catalog.oid := coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid);
    need constant pg_catalog.int4 := roost.text_need(watched);
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 1
        or pg_catalog.current_setting('roost.nested', true) operator(pg_catalog.<>) ''
    then
        mark := pg_catalog.nextval('roost.change_id_seq');
    end if;
    if need operator(pg_catalog.=) 0 then
        insert into roost.change (relid, op, reduced, old_record)
        select watched, 'D', coalesce(large, true), case when large then roost.reduced(record) else record end
        from (
            select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 1048580 as large
            from (
                select case when pg_catalog.pg_column_size(o.*) operator(pg_catalog.<=) 524288
                    then roost.guarded(o.*) else roost.too_large() end as record
                from roost_old o offset 0
            ) rows
        ) sized;
    else
        insert into roost.change (relid, op, reduced, old_record, old_row_text)
        select
            watched, 'D', coalesce(large, true), case when large then roost.reduced(record) else record end,
            case when large then null else exact end
        from (
            select (made).record, (made).exact,
                pg_catalog.pg_column_size((made).record) operator(pg_catalog.>) 1048580 as large
            from (select roost.exact_row(o.*, own.need) as made from roost_old o offset 0) rows
            offset 0
        ) sized;
    end if;
    if found then
        if pg_catalog.current_setting('roost.large', true) operator(pg_catalog.=) 'true' then
            perform pg_catalog.set_config('roost.large', '', true);
            begin
                execute roost.large_statement(tg_relid, 'o');
            exception when others or assert_failure then
                perform roost.note_losses();
            end;
        end if;
        if mark is not null then
            perform roost.settle(watched, 'D', mark);
        end if;
        if roost.must_ring() and roost.may_notify() then
            perform pg_catalog.pg_notify('roost', '');
        end if;
    end if;
    if before is not null then
        perform roost.unpin(before);
    end if;
    return null;
end
$$;

-- The two transition tables list the same rows in the same order; that is the only thing that pairs them, as a key may be missing or be
-- what the statement changed. FULL, so that a row without its partner is not lost.
create function roost.on_update() returns trigger
    language plpgsql security definer
as $$
<<own>>
declare
    before pg_catalog.text[];
    mark pg_catalog.int8;
    watched constant pg_catalog.oid := coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid);
    need constant pg_catalog.int4 := roost.text_need(watched);
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 1
        or pg_catalog.current_setting('roost.nested', true) operator(pg_catalog.<>) ''
    then
        mark := pg_catalog.nextval('roost.change_id_seq');
    end if;
    if pg_catalog.pg_partition_root(tg_relid) is not null
        and (select pg_catalog.count(*) from roost_new)
            operator(pg_catalog.<>) (select pg_catalog.count(*) from roost_old)
    then
        execute roost.unpaired_statement(tg_relid) using watched;
    elsif need operator(pg_catalog.=) 0 then
        insert into roost.change (relid, op, reduced, record, old_record)
        select
            watched, 'U', coalesce(large, true),
            case when large and record is not null then roost.reduced(record) else record end,
            case when large and old_record is not null then roost.reduced(old_record) else old_record end
        from (
            select
                coalesce(n.place, o.place) as place, record, old_record,
                greatest(pg_catalog.pg_column_size(record), pg_catalog.pg_column_size(old_record))
                    operator(pg_catalog.>) 1048580 as large
            from (
                select pg_catalog.row_number() over () as place, record
                from (
                    select case when pg_catalog.pg_column_size(n.*) operator(pg_catalog.<=) 524288
                        then roost.guarded(n.*) else roost.too_large() end as record
                    from roost_new n offset 0
                ) n
            ) n
            full join (
                select pg_catalog.row_number() over () as place, old_record
                from (
                    select case when pg_catalog.pg_column_size(o.*) operator(pg_catalog.<=) 524288
                        then roost.guarded(o.*) else roost.too_large() end as old_record
                    from roost_old o offset 0
                ) o
            ) o on n.place operator(pg_catalog.=) o.place
        ) paired
        order by place;
    else
        insert into roost.change (relid, op, reduced, record, old_record, row_text, old_row_text)
        select
            watched, 'U', coalesce(large, true),
            case when large and record is not null then roost.reduced(record) else record end,
            case when large and old_record is not null then roost.reduced(old_record) else old_record end,
            case when large then null else exact end, case when large then null else old_exact end
        from (
            select
                coalesce(n.place, o.place) as place, (n.made).record, (n.made).exact,
                (o.made).record as old_record, (o.made).exact as old_exact,
                greatest(pg_catalog.pg_column_size((n.made).record), pg_catalog.pg_column_size((o.made).record))
                    operator(pg_catalog.>) 1048580 as large
            from (
                select pg_catalog.row_number() over () as place, made
                from (select roost.exact_row(n.*, own.need) as made from roost_new n offset 0) n
            ) n
            full join (
                select pg_catalog.row_number() over () as place, made
                from (select roost.exact_row(o.*, own.need) as made from roost_old o offset 0) o
            ) o on n.place operator(pg_catalog.=) o.place
            offset 0
        ) paired
        order by place;
    end if;
    if found then
        if pg_catalog.current_setting('roost.large', true) operator(pg_catalog.=) 'true' then
            perform pg_catalog.set_config('roost.large', '', true);
            begin
                execute roost.large_statement(tg_relid, 'no');
            exception when others or assert_failure then
                perform roost.note_losses();
            end;
        end if;
        if mark is not null then
            perform roost.settle(watched, 'U', mark);
        end if;
        if roost.must_ring() and roost.may_notify() then
            perform pg_catalog.pg_notify('roost', '');
        end if;
    end if;
    if before is not null then
        perform roost.unpin(before);
    end if;
    return null;
end
$$;

create function roost.on_truncate() returns trigger
    language plpgsql security definer
as $$
begin
    insert into roost.change (relid, op)
    values (coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'T');
    if roost.must_ring() and roost.may_notify() then
        perform pg_catalog.pg_notify('roost', '');
    end if;
    return null;
end
$$;

revoke execute on function roost.on_insert(), roost.on_update(), roost.on_delete(), roost.on_truncate() from public;
