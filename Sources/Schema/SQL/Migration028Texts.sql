-- A row's exact values beside its JSON, where JSON does not read back as what it was written from.
--
-- What was wrong: policies and filters read a row's JSON back as the table's row. That is exact for most types, and not for
-- some: a JSON null becomes SQL's null, an hstore or a geometry is no text of its type, a cast to json leaves digits out,
-- and arrays lose their bounds. Policies showed rows that a SELECT hides.
--
-- What a row has, for each of its versions (row_text, old_row_text)
--   * null: nothing is known beyond the JSON. So it is of tables all of whose types read back from JSON, and of rows that
--     were written before this migration, or before somebody noticed that a column was added (refresh_text_needs).
--   * '' : the JSON reads back exactly; a null in it is SQL's.
--   * else Postgres' own text of the row (a composite's output). Its fields are in the order of the JSON's members, as both
--     are made of one tuple, so a field belongs to the name of its member. No value depends on the order of the table's
--     columns now, and none comes under another name, whatever was altered since.
-- Clients are sent the JSON, as before.
--
-- Invariants
--   * A writer never fails for a text: row_text catches what an output function raises.
--   * It costs nothing where no watched table needs it, as text_need is a constant then: a function that refresh_text_needs
--     writes anew, as reading the catalog in every statement costs 15 us.
--   * A text means the same whoever wrote it: DateStyle is pinned with the other settings, and names of reg* types are
--     qualified.
--   * Whoever reads a row for a policy and cannot tell whether a null is JSON's or SQL's hides it (PolicyRecords).
-- Lock order: advisory lock (1919905650, 1), of those who replace text_need; nothing is waited for with it.
-- Locks: ACCESS EXCLUSIVE on roost.change for a moment; nothing is rewritten.

alter table roost.change add row_text text, add old_row_text text;
comment on column roost.change.row_text is
    'The row as Postgres writes it, where its JSON is not exact; empty where it is; null where nobody looked.';
comment on column roost.change.old_row_text is 'As row_text, of the row before.';

-- How exactly JSON keeps values of a type: 'exact'; 'json' (its null is lost); 'bounds' (an array, whose bounds are lost);
-- 'text' (only its text is exact); 'nested' (so, with json inside); 'names' (so, and the text depends on the search_path).
-- A domain is as its base type. Each type that a value may hold is looked at once, however deep types are nested.
create function roost.value_form(type oid) returns text
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    with recursive part (oid, is_top) as (
        select type, true
        union
        select held.oid, p.is_top and t.typtype = 'd'
        from part p join pg_type t on t.oid = p.oid cross join lateral (
            select t.typbasetype as oid where t.typtype = 'd'
            union all
            select t.typelem where t.typtype <> 'd' and t.typlen = -1 and t.typelem <> 0
            union all
            select a.atttypid from pg_attribute a
            where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
        ) held
    ), found as (
        select p.is_top, t.oid in ('json'::regtype, 'jsonb'::regtype) as is_json,
               t.typlen = -1 and t.typelem <> 0 as is_array,
               t.typnamespace = 'pg_catalog'::regnamespace and t.typname ~ '^reg' as is_name,
               t.typtype = 'c' or exists (
                   select from pg_cast c where c.castsource = t.oid and c.casttarget in ('json'::regtype, 'jsonb'::regtype)
               ) as is_text
        from part p join pg_type t on t.oid = p.oid where t.typtype <> 'd'
    )
    select case
        when bool_or(is_name) then 'names'
        when bool_or(is_top and is_json) then 'json'
        when bool_or(is_json) then 'nested'
        when bool_or(is_text) or count(*) filter (where is_array) > 1 then 'text'
        when bool_or(is_array) then 'bounds'
        else 'exact' end
    from found
$$;

-- What the rows of `watched` need besides JSON: 0 nothing, 1 a text where JSON holds a null that may be JSON's, 2 so, and
-- where an array has bounds of its own, 3 a text always, 4 so, with qualified names. Stable, as a plan would keep what an
-- immutable function answered.
create function roost.text_need(watched oid) returns integer language sql stable as 'select 0';

-- Has text_need say what the columns of the watched tables are now. To be called whenever one may have been altered.
-- Locks: advisory lock (1919905650, 1), where there is news.
create function roost.refresh_text_needs() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    body text;
begin
    for attempt in 1..2 loop
        with columns as materialized (
            select distinct a.attrelid as relid, a.atttypid as type from roost.watched w
            join pg_attribute a on a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped
        ), forms as materialized (
            select type, roost.value_form(type) as form from (select distinct type from columns) types
        )
        select 'select ' || coalesce(
            'case ' || string_agg(format('when $1 operator(pg_catalog.=) any (''%s''::pg_catalog.oid[]) then %s',
                tables, need), ' ' order by need) || ' else 0 end', '0')
        into body
        from (
            select need, array_agg(oid order by oid) as tables
            from (
                select a.relid as oid, max(case f.form when 'names' then 4 when 'nested' then 3 when 'text' then 3
                    when 'bounds' then 2 when 'json' then 1 else 0 end) as need
                from columns a join forms f on f.type = a.type
                group by a.relid
            ) needs
            where need > 0 group by need
        ) grouped;
        if body = (select prosrc from pg_proc where oid = 'roost.text_need(oid)'::regprocedure) then
            return;
        end if;
        exit when attempt = 2;
        -- Somebody else may have written it while this waited.
        perform pg_advisory_xact_lock(1919905650, 1);
    end loop;
    execute 'create or replace function roost.text_need(watched oid) returns integer language sql stable as '
        || quote_literal(body);
end
$$;

-- Whether a row's text has what its JSON loses: an array with bounds begins with them, as in "[0:1]={1,2}"; a JSON null is a
-- field of its own. What only looks like one is kept, too, which does no harm.
create function roost.is_peculiar(made text) returns boolean language sql immutable as $$
    select pg_catalog.strpos(made, ']={') operator(pg_catalog.>) 0
        or pg_catalog.strpos(made, 'null') operator(pg_catalog.>) 0
            and made operator(pg_catalog.~) '[(,]"?\s*null\s*"?[,)]'
$$;

-- The text of a row of which `record` is the JSON, if it needs one. Names are qualified, as in roost.guarded, which is
-- called as often. Of more than 8 MiB none is made: such a row is reduced.
create function roost.row_text("row" record, record json, need integer) returns text
    language plpgsql volatile
as $$
declare
    path constant pg_catalog.text := case when need operator(pg_catalog.=) 4
        then pg_catalog.current_setting('search_path') end;
    made pg_catalog.text;
begin
    if record is null and pg_catalog.pg_column_size("row") operator(pg_catalog.>) 8388608 then
        return null;
    end if;
    if path is not null then
        perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
    end if;
    made := "row"::pg_catalog.text;
    if path is not null then
        perform pg_catalog.set_config('search_path', path, true);
    end if;
    return case when need operator(pg_catalog.<) 3 and not roost.is_peculiar(made) then '' else made end;
exception when others or assert_failure then
    return null;
end
$$;

-- A version of a row as the outbox has it.
create type roost.exact_row as (record json, exact text);

-- A row's JSON and its text, as roost.guarded and roost.row_text make them, in one block.
create function roost.exact_row("row" record, need integer) returns roost.exact_row
    language plpgsql volatile
as $$
declare
    made roost.exact_row;
begin
    if pg_catalog.pg_column_size("row") operator(pg_catalog.>) 524288 then
        made.record := roost.too_large();
        made.exact := roost.row_text("row", null, need);
        return made;
    end if;
    made.record := pg_catalog.row_to_json("row");
    if need operator(pg_catalog.=) 1
        and pg_catalog.strpos(made.record::pg_catalog.text, 'null') operator(pg_catalog.=) 0
    then
        made.exact := '';
    elsif need operator(pg_catalog.<) 4 then
        made.exact := "row"::pg_catalog.text;
        if need operator(pg_catalog.<) 3 and not roost.is_peculiar(made.exact) then
            made.exact := '';
        end if;
    else
        made.exact := roost.row_text("row", made.record, need);
    end if;
    return made;
exception when others or assert_failure then
    made.record := roost.too_large();
    made.exact := roost.row_text("row", null, need);
    return made;
end
$$;

-- As in Migration002Triggers.sql, with DateStyle: ranges of dates, and texts of rows, show it.
create or replace function roost.is_pinned() returns boolean language sql stable as $$
    select pg_catalog.current_setting('TimeZone') operator(pg_catalog.=) any ('{UTC,Etc/UTC,GMT}'::pg_catalog.text[])
        and pg_catalog.current_setting('bytea_output') operator(pg_catalog.=) 'hex'
        and pg_catalog.current_setting('IntervalStyle') operator(pg_catalog.=) 'postgres'
        and pg_catalog.current_setting('extra_float_digits')::pg_catalog.int4 operator(pg_catalog.>) 0
        and pg_catalog.left(pg_catalog.current_setting('DateStyle'), 3) operator(pg_catalog.=) 'ISO'
$$;

create or replace function roost.pin() returns text[] language plpgsql as $$
declare
    before text[] := array[
        pg_catalog.current_setting('TimeZone'), pg_catalog.current_setting('bytea_output'),
        pg_catalog.current_setting('IntervalStyle'), pg_catalog.current_setting('extra_float_digits'),
        pg_catalog.current_setting('DateStyle')];
begin
    perform roost.unpin('{UTC,hex,postgres,1,ISO}');
    return before;
end
$$;

create or replace function roost.unpin(settings text[]) returns void language plpgsql as $$
begin
    perform pg_catalog.set_config('TimeZone', settings[1], true);
    perform pg_catalog.set_config('bytea_output', settings[2], true);
    perform pg_catalog.set_config('IntervalStyle', settings[3], true);
    perform pg_catalog.set_config('extra_float_digits', settings[4], true);
    perform pg_catalog.set_config('DateStyle', settings[5], true);
end
$$;

-- As in Migration011Rows.sql, with the text of each row (exact).
create or replace function roost.careful_query(watched oid, transition text) returns text
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    select format(
        'select pg_catalog.row_number() over () as place, whole, small, exact from (select '
        'case when %s operator(pg_catalog.<=) 8388608 then coalesce(roost.attempt(r.*), '
        '(select case when v is not null then pg_catalog.row_to_json(v.*) end from (select %s offset 0) v)) end as whole, '
        '(select coalesce(pg_catalog.json_object_agg(v.key, v.value), ''{}'') from (values %s) v (key, value) '
        'where pg_catalog.octet_length(v.value::pg_catalog.text) operator(pg_catalog.<=) 64) as small, %s as exact '
        'from %s r offset 0) r',
        coalesce(string_agg(format('coalesce(%s, 0)::pg_catalog.int8', format(
            case when b.typname in ('text', 'varchar', 'json', 'xml')
                then 'pg_catalog.octet_length(r.%I::pg_catalog.text)'
            when b.typname = 'bytea' then 'pg_catalog.octet_length(r.%I::pg_catalog.bytea)'
            when b.typname = 'bpchar' then 'pg_catalog.octet_length(r.%I::pg_catalog.bpchar)'
            else 'pg_catalog.pg_column_size(r.%I)' end, a.attname)), ' operator(pg_catalog.+) '), '0'),
        string_agg(format('roost.value_as_json(r.%1$I) as %1$I', a.attname), ', ' order by a.attnum),
        coalesce(string_agg(format(
            '(%1$L::pg_catalog.text, case when r.%1$I is not distinct from null then ''null''::pg_catalog.json '
            'when pg_catalog.pg_column_size(r.%1$I) operator(pg_catalog.<=) 4096 '
            'then roost.value_as_json(r.%1$I) end)', a.attname), ', ' order by a.attnum),
            '(null::pg_catalog.text, null::pg_catalog.json)'),
        case need.need when 0 then 'null::pg_catalog.text' else format('roost.row_text(r.*, null, %s)', need.need) end,
        transition)
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
        and b.typnamespace = 'pg_catalog'::regnamespace
    cross join (select roost.text_need(coalesce(pg_partition_root(watched), watched)) as need) need
    where a.attrelid = watched and a.attnum > 0 and not a.attisdropped
    group by need.need
$$;

-- As in Migration011Rows.sql, with texts.
create or replace function roost.large_statement(watched oid, letters text) returns text
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    with side as (
        select letter, case letter when 'n' then 'roost_new' else 'roost_old' end as transition,
               case letter when 'n' then 'record' else 'old_record' end as field,
               case letter when 'n' then 'row_text' else 'old_row_text' end as text_field
        from regexp_split_to_table(letters, '') letter
    ), limits as (
        select string_agg(format(
            '%s.whole is null or pg_catalog.pg_column_size(%1$s.whole) operator(pg_catalog.>) 1048580', letter), ' or ')
            as is_large
        from side
    )
    select
        'with mine as materialized (select id, xid, record, old_record, '
        'pg_catalog.row_number() over (order by id) as place from roost.change '
        'where xid operator(pg_catalog.=) pg_catalog.pg_current_xact_id() and cmin operator(pg_catalog.=) ('
        'select cmin from roost.change where xid operator(pg_catalog.=) pg_catalog.pg_current_xact_id() '
        'and id operator(pg_catalog.=) pg_catalog.currval(''roost.change_id_seq''))) '
        || format('update roost.change c set reduced = (%s)', is_large)
        || string_agg(format(', %s = case when %s then %s.small else %3$s.whole end, '
            '%s = case when %2$s then null else %3$s.exact end', field, is_large, letter, text_field), '')
        || ' from mine m'
        || string_agg(format(
            ' join (%s) %s on %2$s.place operator(pg_catalog.=) m.place',
            roost.careful_query(watched, transition), letter), '')
        || ' where c.xid operator(pg_catalog.=) m.xid and c.id operator(pg_catalog.=) m.id and ('
        || string_agg(format('m.%s is null', field), ' or ') || ')'
    from side cross join limits
    group by is_large
$$;

create or replace function roost.note_losses() returns void
    language sql
    set search_path = pg_catalog, pg_temp
as $$
    update roost.change set op = 'L', reduced = false, record = null, old_record = null, row_text = null,
        old_row_text = null
    where xid = pg_current_xact_id()
        and (op in ('I', 'U') and record is null or op in ('D', 'U') and old_record is null)
$$;

create or replace function roost.unpaired_statement(watched oid) returns text
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    with key (columns) as (
        select string_agg(format('r.%I', a.attname), ', ' order by k.place)
        from pg_index i cross join unnest(i.indkey::int2[]) with ordinality k (attnum, place)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
        where i.indrelid = watched and i.indisprimary and not k.attnum = any (
            select unnest(p.partattrs::int2[]) from pg_partitioned_table p where p.partrelid = watched)
    ), side (query) as (
        select
            '(select c.place, c.whole, c.small, c.exact, k.key, pg_catalog.count(*) over (partition by k.key) as of, '
            'pg_catalog.row_number() over (partition by k.key order by c.place) as nth from (%s) c '
            'join (select pg_catalog.row_number() over () as place, '
            || coalesce(format('pg_catalog.json_build_array(%s)::pg_catalog.text', columns), 'null::pg_catalog.text')
            || ' as key from %s r) k on k.place operator(pg_catalog.=) c.place)'
        from key
    )
    select
        'insert into roost.change (relid, op, reduced, record, old_record, row_text, old_row_text) '
        'select $1, op::"char", large, '
        'case when large then new_small else new_whole end, case when large then old_small else old_whole end, '
        'case when large then null else new_exact end, case when large then null else old_exact end '
        'from (select case when o.place is null then ''I'' when n.place is null then ''D'' else ''U'' end as op, '
        'coalesce(n.place, o.place) as place, n.exact as new_exact, o.exact as old_exact, n.small as new_small, n.whole as new_whole, o.small as old_small, '
        'o.whole as old_whole, '
        'n.place is not null and (n.whole is null '
        'or pg_catalog.pg_column_size(n.whole) operator(pg_catalog.>) 1048580) '
        'or o.place is not null and (o.whole is null '
        'or pg_catalog.pg_column_size(o.whole) operator(pg_catalog.>) 1048580) as large from '
        || format(query, roost.careful_query(watched, 'roost_new'), 'roost_new') || ' n full join '
        || format(query, roost.careful_query(watched, 'roost_old'), 'roost_old')
        || ' o on n.key operator(pg_catalog.=) o.key and n.of operator(pg_catalog.=) o.of '
        'and n.nth operator(pg_catalog.=) o.nth) r '
        'order by pg_catalog.array_position(''{D,U,I}''::pg_catalog.text[], op), place'
    from side
$$;

-- As in Migration011Rows.sql, with texts.
create or replace function roost.on_insert() returns trigger
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

create or replace function roost.on_delete() returns trigger
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

-- The two transition tables list the same rows in the same order; see Migration011Rows.sql.
create or replace function roost.on_update() returns trigger
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

-- A message's JSON. A column that somebody added may have a value without JSON, which is a text then; what even so has none is
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

-- As in Migration027Persistence.sql.
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

-- The changes that are moved keep their texts, and their place in the WAL: as in Migration013Order.sql otherwise.
do $$
declare
    body constant text := pg_get_functiondef('roost.reorder(oid,bigint,bigint,int8range[])'::regprocedure);
    moved text := replace(replace(body,
        'insert into roost.change (id, xid, relid, op, reduced, at, record, old_record)',
        'insert into roost.change (id, xid, relid, op, reduced, at, record, old_record, row_text, old_row_text)'),
        't.record, t.old_record' || chr(10), 't.record, t.old_record, t.row_text, t.old_row_text' || chr(10));
begin
    if length(moved) - length(body) <> 52 then
        raise exception 'roost.reorder is another function than Migration013Order.sql made';
    end if;
    execute moved;
end
$$;

-- As in Migration016Watched.sql; and what the table's rows need is known from its first change on.
create or replace function roost.keep_captures(root oid, released boolean) returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    members oid[] := array(select relid::oid from pg_partition_tree(root) union select root);
begin
    if released then
        update roost.captured set is_released = true where relid = any (members);
        return;
    end if;
    perform roost.refresh_text_needs();
    update roost.captured c set mark = m.mark, is_whole = m.is_whole
    from roost.capture_mark m where m.relid = c.relid and c.is_whole and c.relid = any (members);
    delete from roost.captured c
    where c.is_whole and c.relid = any (members) and not exists (select from roost.capture_mark m where m.relid = c.relid);
end
$$;

-- A text as every client of Postgres can read it, as roost.legible has it of JSON.
create function roost.legible(row_text text) returns text
    language plpgsql immutable strict
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform convert_to(row_text, 'UTF8');
    return row_text;
exception when others then
    return regexp_replace(row_text, '[^\x01-\x7f]', '?', 'g');
end
$$;

select roost.refresh_text_needs();

revoke execute on function
    roost.message_row(record, oid), roost.exact_row(record, integer), roost.row_text(record, json, integer),
    roost.text_need(oid)
from public;
grant execute on function roost.value_form(oid), roost.refresh_text_needs(), roost.legible(text) to public;

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format(
            'grant execute on function roost.row_text(record, json, integer), roost.text_need(oid) to %s', hub::regrole);
    end loop;
end
$$;
