-- How a row is kept: as JSON, and as Postgres' own text where JSON does not read back as the value it was made of.
--
-- Policies and filters read a row's JSON back as the table's row. That is exact for most types, and not for some: a JSON null becomes
-- SQL's null, an hstore or a geometry is no text of its type, a cast to json leaves digits out, and arrays lose their bounds.
--
-- The text of each version of a row (row_text, old_row_text)
--   * null: nothing is known beyond the JSON. So it is of tables all of whose types read back from JSON, and of rows that were written
--     before somebody noticed that a column was added (refresh_text_needs).
--   * '' : the JSON reads back exactly; a null in it is SQL's.
--   * else Postgres' own text of the row (a composite's output). Its fields are in the order of the JSON's members, as both are made of
--     one tuple, so a field belongs to the name of its member. No value depends on the order of the table's columns now, and none comes
--     under another name, whatever was altered since.
-- Clients are sent the JSON.
--
-- Size. JSON over 1 GB is an error, and of 300 MB it takes a minute: control characters are six times as long in it, bytea twice, and
-- what is stored compressed up to 255 times. So of a row that takes more than 512 KiB as it is stored no JSON is made before its columns
-- were looked at one by one; with more than 8 MiB in them it is reduced at once, as no type's JSON is eight times smaller than its
-- value. A row over 1 GB, which only several UPDATEs can make, is too large for any trigger that has transition tables.
--
-- Values without JSON. A cast to json that somebody wrote may fail for some values (PostGIS' does for curves), and so may any code of a
-- type that is not Postgres' own. Each row's JSON is made in a block that catches that: 1.5 us for each row of a large statement, which
-- costs 4 to 8 without it, and 6 for a statement of one row, which costs 30. A block around the statement costs as much and takes a
-- transaction id each time, as it writes; to ask the catalog first whether a column's type may fail costs 15. Where a row fails it is
-- made column by column, and a value without JSON is a text. What cannot be recorded even so becomes a change of the operation 'L':
-- subscribers are told.
--
-- Invariants
--   * A writer never fails for a row's JSON or text. OTHERS leaves two errors out, of which a cancelled statement is one that the writer
--     has to hear of.
--   * A text costs nothing where no watched table needs one, as text_need is a constant then: a function that refresh_text_needs writes
--     anew, as reading the catalog in every statement costs 15 us.
--   * A text means the same whoever wrote it: names of reg* types are qualified.
--   * Who reads a row for a policy and cannot tell whether a null is JSON's or SQL's hides it (PolicyRecords).
--   * Functions that run for every row have no SET clause: a path of their own would cost twice as much as the block. Every name in them
--     is qualified, operators too, as the writer's search_path is not to be trusted.
-- Lock order: advisory lock (1919905650, 1), of those who replace text_need; nothing is waited for with it.

-- Notes that a row is too large to be made JSON of, and stands for what takes its place later in the statement's trigger.
create function roost.too_large() returns json
    language plpgsql volatile
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform set_config('roost.large', 'true', true);
    return null;
end
$$;

-- A row over the limit, with its values of up to 64 bytes.
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

-- A row's JSON; if it has none, what roost.too_large returns.
create function roost.guarded("row" record) returns json
    language plpgsql volatile
as $$
begin
    return pg_catalog.row_to_json("row");
exception when others or assert_failure then
    return roost.too_large();
end
$$;

-- A row's JSON, or null where it has none, as it would be over 1 GB.
create function roost.attempt("row" record) returns json
    language plpgsql stable
    set search_path = pg_catalog, pg_temp
as $$
begin
    return row_to_json("row");
exception when others or assert_failure then
    return null;
end
$$;

-- A value's JSON, or else its text; null where neither can be had, or it is so large that a row of such values would be over 1 GB.
create function roost.value_as_json(value anyelement) returns json
    language plpgsql stable
as $$
declare
    made pg_catalog.json;
begin
    if value is not distinct from null then
        return 'null';
    end if;
    begin
        made := pg_catalog.to_json(value);
    exception when others or assert_failure then
        made := null;
    end;
    if made is null then
        made := pg_catalog.to_json(value::pg_catalog.text);
    end if;
    return case when pg_catalog.octet_length(made::pg_catalog.text) operator(pg_catalog.<=) 524288 then made end;
exception when others or assert_failure then
    return null;
end
$$;

-- The JSON of a value that is given as text, whatever may be wrong with it: a domain's rule may have changed since, its type be gone, or
-- a cast to json that somebody wrote fail. Then it is a text.
create function roost.text_as_json(value text, type text) returns json
    language plpgsql stable
as $$
declare
    json pg_catalog.json;
begin
    execute pg_catalog.format('select pg_catalog.to_json($1::%s)', type) into json using value;
    return json;
exception when others or assert_failure or query_canceled then
    return pg_catalog.to_json(value);
end
$$;

-- A record as every client of Postgres can read it: where a text is not valid in the database's encoding, or has no place in UTF-8, all
-- that is no ASCII in it is the replacement character.
create function roost.legible(record json) returns json
    language plpgsql immutable strict
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform convert_to(record::text, 'UTF8');
    return record;
exception when others then
    return regexp_replace(record::text, '[^\x01-\x7f]', '\\ufffd', 'g')::json;
end
$$;

-- A text as every client of Postgres can read it.
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

-- How exactly JSON keeps values of a type: 'exact'; 'json' (its null is lost); 'bounds' (an array, whose bounds are lost); 'text' (only
-- its text is exact); 'nested' (so, with json inside); 'names' (so, and the text depends on the search_path). A domain is as its base
-- type. Each type that a value may hold is looked at once, however deep types are nested.
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

-- What the rows of `watched` need besides JSON: 0 nothing, 1 a text where JSON holds a null that may be JSON's, 2 so, and where an array
-- has bounds of its own, 3 a text always, 4 so, with qualified names. Stable, as a plan would keep the answer of an immutable function.
create function roost.text_need(watched oid) returns integer language sql stable as 'select 0';

-- True if a row's text has what its JSON loses: an array with bounds begins with them, as in "[0:1]={1,2}"; a JSON null is a field of
-- its own. What only looks like one is kept, too, which does no harm.
create function roost.is_peculiar(made text) returns boolean language sql immutable as $$
    select pg_catalog.strpos(made, ']={') operator(pg_catalog.>) 0
        or pg_catalog.strpos(made, 'null') operator(pg_catalog.>) 0
            and made operator(pg_catalog.~) '[(,]"?\s*null\s*"?[,)]'
$$;

-- The text of a row of which `record` is the JSON, if it needs one. Of more than 8 MiB none is made: such a row is reduced.
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

-- The query of a transition table's rows, each made column by column: whole, small (its values of up to 64 bytes), exact (its text).
-- `watched` is what the trigger is on, a table or a partition.
create function roost.careful_query(watched oid, transition text) returns text
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

-- The statement that makes the rows of the present statement that are large, or have no JSON; `letters` are n, o or both.
create function roost.large_statement(watched oid, letters text) returns text
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

-- The statement that writes an UPDATE some of whose rows vanished on their way into another partition. Rows are paired by those columns
-- of the primary key that are no partition key, where both tables have as many of it.
create function roost.unpaired_statement(watched oid) returns text
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

-- Says of what this transaction could not record that it is lost.
create function roost.note_losses() returns void
    language sql
    set search_path = pg_catalog, pg_temp
as $$
    update roost.change set op = 'L', reduced = false, record = null, old_record = null, row_text = null,
        old_row_text = null
    where xid = pg_current_xact_id()
        and (op in ('I', 'U') and record is null or op in ('D', 'U') and old_record is null)
$$;

revoke execute on function
    roost.too_large(), roost.reduced(json), roost.guarded(record), roost.attempt(record), roost.value_as_json(anyelement),
    roost.text_as_json(text, text), roost.text_need(oid), roost.row_text(record, json, integer), roost.exact_row(record, integer),
    roost.careful_query(oid, text), roost.large_statement(oid, text), roost.unpaired_statement(oid), roost.note_losses()
from public;
grant execute on function
    roost.legible(json), roost.legible(text), roost.value_form(oid) to public;
