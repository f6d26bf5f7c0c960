-- A row's changes in the order in which they happened, whatever triggers the application has; and a writer who never
-- fails, however large the row, whether or not he prepares his transaction.
--
-- Order. Our triggers run at the end of their statement, after what the application's row triggers did in it: the
-- UPDATE that such a trigger makes of the row just inserted is recorded before the INSERT. The ids are put right by the
-- writer himself, before anybody sees them:
--   * Changes recorded while a statement was under way by others that its triggers ran (pg_trigger_depth() is higher)
--     go behind the statement's own of the same row if they found what the statement had left: their old record is its
--     record, or they insert a key that it freed. Everything that followed in the same key goes along.
--   * The opposite cannot be: Postgres lets no statement touch a row version that what it set off has made
--     (TM_SelfModified is an error). Where a BEFORE trigger deletes a row and the statement inserts another under its
--     key, the DELETE stays first, as its old record is no record of the statement.
--   * The new ids are drawn while the rows' locks are held, so the order among transactions stays what it was, and
--     readers (windows, cursors, recoveries) know of nothing.
--   * roost.nested, a setting of the transaction that a savepoint takes back, tells by depth where the last statement
--     ended and what the present one's triggers recorded; a statement runs each of its triggers once, which tells
--     statements apart. Without nested triggers it is not there, and all of this costs a comparison (1 us of 10 for an
--     INSERT of one row, without its commit). With them a statement of the client costs about 30 us more where it writes
--     one row and they that row alone (roost.follow), else about 150. A writer who sets it himself disorders his own
--     changes, no more.
--   * Not told apart: versions of a row that are the same to the last column, where a row comes back to what it was
--     within one message of the client; a key that is freed and taken several times by several statements of one
--     message and their triggers; functions that a statement calls, in RETURNING for example, as they write at its own
--     depth; what a BEFORE trigger does to a key that a MERGE both updates and inserts.
--
-- Moves between partitions. A BEFORE trigger of the new partition may skip the row, which then is in the old transition
-- table alone, and everything behind it would be paired with its neighbour. Where the tables differ in length, rows are
-- paired by the primary key, and what finds no partner is a DELETE or an INSERT.
--
-- Size. JSON over 1 GB is an error, and of 300 MB it takes a minute: control characters are six times as long in it,
-- bytea twice, and what is stored compressed up to 255 times. So of a row that takes more than 512 KiB as it is stored
-- no JSON is made before its columns were looked at one by one; with more than 8 MiB in them it is reduced at once, as
-- no type's JSON is eight times smaller than its value. Which rows are reduced, and what is kept of them, is what it
-- was. A row over 1 GB, which only several UPDATEs can make, is still too large for any trigger that has transition
-- tables.
--
-- Values without JSON. A cast to json that somebody wrote may fail for some values (PostGIS' does for curves), and so may
-- any code of a type that is not Postgres' own. Each row's JSON is made in a block that catches that: 1.5 us for each row
-- of a large statement, which costs 4 to 8 without it, and 6 for a statement of one row, which costs 30. A block around
-- the statement costs as much and takes a transaction id each time, as it writes; to ask the catalog first whether a
-- column's type may fail costs 15. Where a row fails it is made column by column, and what has no JSON is a text. What
-- cannot be recorded even so becomes a change of the operation 'L': subscribers are told.
--
-- PREPARE TRANSACTION refuses a transaction that has notified. Where a server allows prepared transactions, nobody
-- rings: the hub looks more often (FeedSession).
--
-- Alerts. What was held for a user falls due at one moment, and what waits for another hub later than what is due at
-- once: the order of a user's alerts is that of the messages in the outbox (place), which every hub reads alike.
--
-- Invariants and lock order are those of Migration002Triggers.sql. Triggers stay as they are, so no table has to be
-- watched again.

-- Whether the writer, who holds no hub's lock, may notify.
create function roost.may_notify() returns boolean language sql stable as $$
    select pg_catalog.current_setting('max_prepared_transactions') operator(pg_catalog.=) '0'
$$;

-- Of this transaction's changes of `watched` behind `floor`: moves what is not in `ranges`, and lies before `place`,
-- behind what lies behind it, where it came later. Nobody knows how many rows there are, so the settings: joins are
-- hashed, the index is used, and nothing is planned anew each time.
create function roost.reorder(watched oid, floor bigint, place bigint, ranges int8range[]) returns void
    language plpgsql
    set search_path = pg_catalog, pg_temp
    set enable_nestloop = off
    set enable_seqscan = off
    set jit = off
    set plan_cache_mode = force_generic_plan
as $$
declare
    mine constant xid8 := pg_current_xact_id();
    keys text[];
begin
    keys := (
        select array_agg(a.attname::text order by k.place)
        from pg_index i cross join unnest(i.indkey::int2[]) with ordinality k (attnum, place)
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
        where i.indrelid = watched and i.indisprimary
    );
    with recursive changes as materialized (
        select c.id, c.id > place as is_own, c.old_record::text as before, c.record::text as version,
               case
                   when c.old_record is null then null
                   when keys is null then c.old_record::text
                   else (select string_agg(quote_nullable(c.old_record ->> k), ',') from unnest(keys) k)
               end as old_key,
               case
                   when c.record is null then null
                   when keys is null then c.record::text
                   else (select string_agg(quote_nullable(c.record ->> k), ',') from unnest(keys) k)
               end as new_key
        from roost.change c
        where c.xid = mine and c.id > floor and c.relid = watched and c.op in ('I', 'U', 'D')
            and not c.id <@ any (ranges)
    ), own as materialized (
        -- A key that the statement takes again was freed in between.
        select *, case when keys is not null and new_key <> coalesce(old_key, '') then
            row_number() over (partition by new_key, new_key <> coalesce(old_key, '') order by id) - 1
            else 0 end as turn
        from changes where is_own
    ), nested as materialized (
        select * from changes where not is_own
    ), links as materialized (
        select id, old_key as key from nested where old_key is not null
        union
        select id, new_key from nested where new_key is not null
    ), later (id, turn) as (
        select n.id, o.turn from nested n join own o on o.version = n.before
        union
        select n.id, o.turn from nested n join own o on o.old_key = n.new_key
        where keys is not null and n.old_key is distinct from n.new_key and o.new_key is distinct from o.old_key
            -- Else the statement freed what the nested one had made.
            and not exists (select from nested m where m.version = o.before and m.id >= n.id)
        union
        select f.id, l.turn from later l join links a on a.id = l.id join links f on f.key = a.key and f.id > a.id
    ), moved as (
        select id, max(turn) as turn, true as is_nested from later group by id
        union all
        select id, turn, false from own where turn > 0
    ), taken as (
        delete from roost.change c using moved m where c.xid = mine and c.id > floor and c.id = m.id
        returning c.*, m.turn, m.is_nested
    )
    insert into roost.change (id, xid, relid, op, reduced, at, record, old_record)
    overriding system value
    select nextval('roost.change_id_seq'), t.xid, t.relid, t.op, t.reduced, t.at, t.record, t.old_record
    from (select * from taken order by turn, is_nested, id) t;
end
$$;

-- What roost.reorder would do, at a tenth of its cost, in the usual case: the trigger that runs is the first of its
-- statement and recorded one change, and the few nested ones of the same table are of its row, as each found what the
-- last had left. False, and nothing is done, where it is not as simple. The setting is reorder's; without it for the
-- path, names are qualified.
create function roost.follow(watched oid, floor bigint, place bigint) returns boolean
    language plpgsql
    set enable_seqscan = off
as $$
declare
    looked_at pg_catalog.int8;
    ids pg_catalog.int8[];
    befores pg_catalog.text[];
    versions pg_catalog.text[];
    own pg_catalog.int4;
begin
    select
        pg_catalog.count(*),
        pg_catalog.array_agg(c.id) filter (where is_same),
        pg_catalog.array_agg(c.old_record::pg_catalog.text) filter (where is_same),
        pg_catalog.array_agg(c.record::pg_catalog.text) filter (where is_same)
    into looked_at, ids, befores, versions
    from (
        select id, relid operator(pg_catalog.=) watched as is_same, old_record, record from roost.change
        where xid operator(pg_catalog.=) pg_catalog.pg_current_xact_id() and id operator(pg_catalog.>) floor
        order by id limit 10
    ) c;
    own := pg_catalog.cardinality(ids);
    if looked_at operator(pg_catalog.>) 9 or own is null or ids[own] operator(pg_catalog.<=) place then
        return false;
    end if;
    if own operator(pg_catalog.=) 1 then
        return true;
    end if;
    if ids[own operator(pg_catalog.-) 1] operator(pg_catalog.>) place
        or coalesce(befores[1] operator(pg_catalog.<>) versions[own], true)
    then
        return false;
    end if;
    for n in 2..own operator(pg_catalog.-) 1 loop
        if coalesce(befores[n] operator(pg_catalog.<>) versions[n operator(pg_catalog.-) 1], true) then
            return false;
        end if;
    end loop;
    for n in 1..own operator(pg_catalog.-) 1 loop
        update roost.change set id = default
        where xid operator(pg_catalog.=) pg_catalog.pg_current_xact_id() and id operator(pg_catalog.=) ids[n];
    end loop;
    return true;
end
$$;

-- Puts the ids of nested changes behind those that the trigger which calls this recorded for `watched` behind `place`.
-- Runs in every statement of whoever has nested triggers: hence no path of its own but qualified names, and text[] for
-- the state, which costs a fifth of jsonb: when the message began, where it did, its greatest depth, and for each depth
-- the three of `slot`.
create function roost.settle(watched oid, op text, place bigint) returns void
    language plpgsql
as $$
declare
    depth constant pg_catalog.int4 := pg_catalog.pg_trigger_depth();
    stamp constant pg_catalog.text := extract(epoch from pg_catalog.statement_timestamp());
    me constant pg_catalog.text := pg_catalog.concat(watched, op);
    setting pg_catalog.text := coalesce(pg_catalog.current_setting('roost.nested', true), '');
    recorded constant pg_catalog.int8 := pg_catalog.currval('roost.change_id_seq');
    state pg_catalog.text[];
    deepest pg_catalog.int4 := depth;
    -- Of this depth: where its last statement began and ended, and what the triggers of the present one recorded.
    slot constant pg_catalog.int4 := depth operator(pg_catalog.*) 3 operator(pg_catalog.+) 1;
    floor pg_catalog.int8;
    fired pg_catalog.text := '';
    ranges pg_catalog.int8range[] := '{}';
begin
    if setting operator(pg_catalog.<>) '' then
        begin
            state := setting;
            if state[1] operator(pg_catalog.=) stamp then
                deepest := greatest(depth, state[3]::pg_catalog.int4);
                if state[slot] is null then
                    floor := state[2];
                elsif me operator(pg_catalog.=) any (
                    pg_catalog.string_to_array(state[slot operator(pg_catalog.+) 2], ' '))
                then
                    -- A statement runs each of its triggers once: this is another.
                    floor := state[slot operator(pg_catalog.+) 1];
                else
                    floor := state[slot];
                    fired := state[slot operator(pg_catalog.+) 2];
                    ranges := array(
                        select range::pg_catalog.int8range
                        from pg_catalog.unnest(pg_catalog.string_to_array(fired, ' ')) range
                        where pg_catalog.left(range, 1) operator(pg_catalog.=) '[');
                end if;
            end if;
        exception when others then
            -- Somebody else's text.
            floor := null;
        end;
    end if;
    if floor is null then
        if depth operator(pg_catalog.=) 1 then
            perform pg_catalog.set_config('roost.nested', '', true);
            return;
        end if;
        state := array[stamp, place::pg_catalog.text];
        floor := place;
        fired := '';
        deepest := depth;
    elsif deepest operator(pg_catalog.>) depth
        and (pg_catalog.cardinality(ranges) operator(pg_catalog.>) 0 or not roost.follow(watched, floor, place))
    then
        perform roost.reorder(watched, floor, place, ranges);
    end if;
    state[3] := deepest;
    state[slot] := floor;
    state[slot operator(pg_catalog.+) 1] := pg_catalog.currval('roost.change_id_seq');
    state[slot operator(pg_catalog.+) 2] := pg_catalog.concat(fired, me, ' [', place, ',', recorded, '] ');
    -- An assignment, as PERFORM runs a query.
    setting := pg_catalog.set_config('roost.nested', state::pg_catalog.text, true);
end
$$;

-- Notes that a row is too large to be made JSON of, and stands for what takes its place later in the statement's
-- trigger.
create function roost.too_large() returns json
    language plpgsql volatile
    set search_path = pg_catalog, pg_temp
as $$
begin
    perform set_config('roost.large', 'true', true);
    return null;
end
$$;

-- A row's JSON; of one that has none, what roost.too_large says. Runs for every row, so names are qualified: a path of
-- its own would cost twice as much as the block. OTHERS leaves assert_failure out, and a cancelled statement, which the
-- writer has to hear of.
create function roost.guarded("row" record) returns json
    language plpgsql volatile
as $$
begin
    return pg_catalog.row_to_json("row");
exception when others or assert_failure then
    return roost.too_large();
end
$$;

-- A value's JSON, or else its text; null where neither can be had, or it is so large that a row of such values would be
-- over 1 GB.
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

-- A record as every client of Postgres can read it: where a text is not what the database's encoding says, or has no
-- place in UTF-8, all that is no ASCII in it is the replacement character.
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

-- A query of the rows of a transition table: each one's place, its whole record unless that is too large, and its
-- reduced one, which is made without the JSON of what is large. A value without JSON is a text in both.
create function roost.careful_query(watched oid, transition text) returns text
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    select format(
        'select pg_catalog.row_number() over () as place, whole, small from (select '
        'case when %s operator(pg_catalog.<=) 8388608 then coalesce(roost.attempt(r.*), '
        '(select case when v is not null then pg_catalog.row_to_json(v.*) end from (select %s offset 0) v)) end as whole, '
        '(select coalesce(pg_catalog.json_object_agg(v.key, v.value), ''{}'') from (values %s) v (key, value) '
        'where pg_catalog.octet_length(v.value::pg_catalog.text) operator(pg_catalog.<=) 64) as small '
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
        transition)
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
        and b.typnamespace = 'pg_catalog'::regnamespace
    where a.attrelid = watched and a.attnum > 0 and not a.attisdropped
$$;

-- The statement that fills in what the trigger that is running left out of its outbox rows, which are those of its last
-- command.
create function roost.large_statement(watched oid, letters text) returns text
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    with side as (
        select letter, case letter when 'n' then 'roost_new' else 'roost_old' end as transition,
               case letter when 'n' then 'record' else 'old_record' end as field
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
        || string_agg(format(', %s = case when %s then %s.small else %3$s.whole end', field, is_large, letter), '')
        || ' from mine m'
        || string_agg(format(
            ' join (%s) %s on %2$s.place operator(pg_catalog.=) m.place',
            roost.careful_query(watched, transition), letter), '')
        || ' where c.xid operator(pg_catalog.=) m.xid and c.id operator(pg_catalog.=) m.id and ('
        || string_agg(format('m.%s is null', field), ' or ') || ')'
    from side cross join limits
    group by is_large
$$;

-- Says of what this transaction could not record that it is lost.
create function roost.note_losses() returns void
    language sql
    set search_path = pg_catalog, pg_temp
as $$
    update roost.change set op = 'L', reduced = false, record = null, old_record = null
    where xid = pg_current_xact_id()
        and (op in ('I', 'U') and record is null or op in ('D', 'U') and old_record is null)
$$;

-- The statement that writes an UPDATE some of whose rows vanished on their way into another partition. Rows are paired
-- by what of the primary key is no partition key, where both tables have as many of it.
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
            '(select c.place, c.whole, c.small, k.key, pg_catalog.count(*) over (partition by k.key) as of, '
            'pg_catalog.row_number() over (partition by k.key order by c.place) as nth from (%s) c '
            'join (select pg_catalog.row_number() over () as place, '
            || coalesce(format('pg_catalog.json_build_array(%s)::pg_catalog.text', columns), 'null::pg_catalog.text')
            || ' as key from %s r) k on k.place operator(pg_catalog.=) c.place)'
        from key
    )
    select
        'insert into roost.change (relid, op, reduced, record, old_record) select $1, op::"char", large, '
        'case when large then new_small else new_whole end, case when large then old_small else old_whole end '
        'from (select case when o.place is null then ''I'' when n.place is null then ''D'' else ''U'' end as op, '
        'coalesce(n.place, o.place) as place, n.small as new_small, n.whole as new_whole, o.small as old_small, '
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

create or replace function roost.on_insert() returns trigger
    language plpgsql security definer
as $$
declare
    before pg_catalog.text[];
    mark pg_catalog.int8;
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 1
        or pg_catalog.current_setting('roost.nested', true) operator(pg_catalog.<>) ''
    then
        mark := pg_catalog.nextval('roost.change_id_seq');
    end if;
    insert into roost.change (relid, op, reduced, record)
    select
        coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'I', coalesce(large, true),
        case when large then roost.reduced(record) else record end
    from (
        select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 1048580 as large
        from (
            select case when pg_catalog.pg_column_size(n.*) operator(pg_catalog.<=) 524288
                then roost.guarded(n.*) else roost.too_large() end as record
            from roost_new n offset 0
        ) rows
    ) sized;
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
            perform roost.settle(coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'I', mark);
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
declare
    before pg_catalog.text[];
    mark pg_catalog.int8;
begin
    if not roost.is_pinned() then
        before := roost.pin();
    end if;
    if pg_catalog.pg_trigger_depth() operator(pg_catalog.>) 1
        or pg_catalog.current_setting('roost.nested', true) operator(pg_catalog.<>) ''
    then
        mark := pg_catalog.nextval('roost.change_id_seq');
    end if;
    insert into roost.change (relid, op, reduced, old_record)
    select
        coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'D', coalesce(large, true),
        case when large then roost.reduced(record) else record end
    from (
        select record, pg_catalog.pg_column_size(record) operator(pg_catalog.>) 1048580 as large
        from (
            select case when pg_catalog.pg_column_size(o.*) operator(pg_catalog.<=) 524288
                then roost.guarded(o.*) else roost.too_large() end as record
            from roost_old o offset 0
        ) rows
    ) sized;
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
            perform roost.settle(coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'D', mark);
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

-- The two transition tables list the same rows in the same order; that is the only thing that pairs them, as a key may
-- be missing or be what the statement changed. FULL, so that a row without its partner is not lost.
create or replace function roost.on_update() returns trigger
    language plpgsql security definer
as $$
declare
    before pg_catalog.text[];
    mark pg_catalog.int8;
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
        execute roost.unpaired_statement(tg_relid) using pg_catalog.pg_partition_root(tg_relid)::pg_catalog.oid;
    else
        insert into roost.change (relid, op, reduced, record, old_record)
        select
            coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'U', coalesce(large, true),
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
            perform roost.settle(coalesce(pg_catalog.pg_partition_root(tg_relid), tg_relid), 'U', mark);
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

create or replace function roost.on_truncate() returns trigger
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

-- As in Migration003Messages.sql. A row of more than 32 MiB has a payload over the limit: jsonb takes at most eight
-- times the room of its text.
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

revoke execute on function
    roost.may_notify(), roost.settle(oid, text, bigint), roost.follow(oid, bigint, bigint),
    roost.reorder(oid, bigint, bigint, int8range[]), roost.too_large(), roost.guarded(record),
    roost.value_as_json(anyelement), roost.note_losses(), roost.attempt(record),
    roost.careful_query(oid, text), roost.large_statement(oid, text), roost.unpaired_statement(oid)
from public;

-- Locks: ACCESS EXCLUSIVE on roost.alert for a moment; nothing is rewritten.
alter table roost.alert add place bigint not null default 0;
comment on column roost.alert.place is 'roost.change.id of the message: a user''s alerts are sent in this order.';
