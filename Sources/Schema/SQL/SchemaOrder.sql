-- A row's changes in the order in which they happened, whatever triggers the application has.
--
-- Our triggers run at the end of their statement, after what the application's row triggers did in it: the UPDATE that such a trigger
-- makes of the row just inserted is recorded before the INSERT. The ids are put right by the writer himself, before anybody sees them:
--   * Changes recorded while a statement was under way by others that its triggers ran (pg_trigger_depth() is higher) go behind the
--     statement's own of the same row if they found what the statement had left: their old record is its record, or they insert a key
--     that it freed. Everything that followed in the same key goes along.
--   * The opposite cannot be: Postgres lets no statement touch a row version that its own triggers have made (TM_SelfModified is an
--     error). Where a BEFORE trigger deletes a row and the statement inserts another under its key, the DELETE stays first, as its old
--     record is no record of the statement.
--   * The new ids are drawn while the rows' locks are held, so the order among transactions stays what it was, and readers (windows,
--     cursors, recoveries) know of nothing.
--   * roost.nested, a setting of the transaction that a savepoint takes back, has for each depth where its present statement may have
--     begun, which triggers ran since and what they recorded, and where it ended; a statement runs each of its triggers once, which tells
--     statements apart, also several of one message of the client. Without nested triggers it is not there, and all of this costs a
--     comparison (1 us of 10 for an INSERT of one row, without its commit). With them a statement of the client costs about 30 us more
--     where it writes one row and they that row alone (roost.follow), else about 150. A writer who sets it himself disorders his own
--     changes, no more.
--
-- Invariants
--   * The order of one row's changes is that in which its versions were written. A row is told by its primary key, or else by an
--     immediate unique index whose columns cannot be null, or else by all its columns.
--   * Each key's changes are a path from one state of its row to the next, and "no row" is a state too. Statements, and what their
--     triggers recorded, are each in order already, so roost.reorder only merges them. It goes from the path's end, which is what the
--     table has now, to its beginning.
--   * The last change of a key leaves what the table has. Where the path passes "no row", or could end in several states, the table is
--     asked (roost.rows_now). Who owns the schema may lack the right to; then the usual order is taken.
--   * What a statement may have set off lies behind the last time one of its triggers ran, and behind all that was recorded less deep.
--     What is older and taken along does no harm: the path says where it belongs.
--   * Not told apart: which of several ways round a circle came first, where versions are the same to the last column; what lies in
--     between, where triggers several levels deep free and take one key again and again in one message; functions that a statement calls,
--     in RETURNING for example, as they write at its own depth; a BEFORE trigger's change of a key that a MERGE both updates and inserts.
-- Lock order: none; the table is read as it is in the writer's own transaction.

-- The rows of `watched` with the keys of `samples` as they are now, as JSON: null where there is none, and nothing at all where it cannot
-- be told (no right to read the table, or a policy would hide rows).
create function roost.rows_now(watched oid, keys text[], samples json[]) returns text[]
    language plpgsql
    set search_path = pg_catalog, pg_temp
    set row_security = off
    set enable_seqscan = off
    set jit = off
as $$
declare
    found_rows text[];
begin
    execute format(
        'select array_agg((select row_to_json(x.*)::text from %1$s x where (%2$s) = (%3$s)) order by s.place) '
        'from unnest($1) with ordinality s (sample, place) cross join json_populate_record(null::%1$s, s.sample) r',
        watched::regclass,
        (select string_agg(format('x.%I', k), ', ') from unnest(keys) k),
        (select string_agg(format('r.%I', k), ', ') from unnest(keys) k))
    into found_rows using samples;
    return found_rows;
exception when others then
    return null;
end
$$;

-- Of this transaction's changes of `watched` behind `floor`: puts each key's in the order of its path. `ranges` are the ids that other
-- triggers of this statement recorded, `place` is where the present one began. A touch is what a change does to one key: one that moves a
-- row to another key touches both. Lists are in order already: others' changes (0), those of `ranges`, and the present trigger's. Nobody
-- knows how many rows there are, so the settings: joins are hashed, the index is used, and nothing is planned anew each time.
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
    ids bigint[];
    -- Of each touch: its change, whether its row was there before and after, and as what.
    changes int[];
    names text[];
    sources text[];
    targets text[];
    lists int[];
    following int[];
    -- Of each change: its touches, how many of them wait for another, whether it goes behind.
    touches1 int[];
    touches2 int[];
    waits int[];
    moves boolean[];
    moved bigint[] := '{}';
    rest int[];
    again int[];
    circuits text[] := '{}';
    samples json[] := '{}';
    present text[];
    heads int[]; ends int[]; stops text[];
    n int; first int; past int; t int; last int; c int; after int; score int; best int; best_score int;
    state text; is_shared boolean := false; length int;
begin
    keys := (
        select array_agg(a.attname::text order by k.place)
        from (
            select i.indexrelid, i.indkey, i.indnkeyatts from pg_index i
            where i.indrelid = watched and i.indisunique and i.indimmediate and i.indisvalid
                and i.indpred is null and i.indexprs is null
                and not exists (
                    select from pg_attribute a
                    where a.attrelid = watched and a.attnum = any (i.indkey::int2[]) and not a.attnotnull)
            order by i.indisprimary desc, i.indisreplident desc, i.indexrelid limit 1
        ) i
        cross join unnest(i.indkey::int2[]) with ordinality k (attnum, place)
        join pg_attribute a on a.attrelid = watched and a.attnum = k.attnum
        where k.place <= i.indnkeyatts
    );
    with change as materialized (
        select c.id, row_number() over (order by c.id)::int as nth,
               case when c.id > place then cardinality(ranges) + 1 else coalesce((
                   select min(r.nth)::int from unnest(ranges) with ordinality r (range, nth)
                   where c.id <@ r.range), 0) end as list,
               coalesce(c.old_record::text, '') as before, coalesce(c.record::text, '') as version,
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
    ), touch as (
        select nth, list, old_key as key, before as source,
            case when old_key = new_key then version else '' end as target
        from change where old_key is not null
        union all
        select nth, list, new_key, '', version from change
        where new_key is not null and new_key is distinct from old_key
    ), sorted as (
        select *, row_number() over (order by key, list, nth)::int as place_of from touch
    )
    select
        (select array_agg(id order by nth) from change),
        array_agg(nth order by place_of), array_agg(key order by place_of), array_agg(source order by place_of),
        array_agg(target order by place_of), array_agg(list order by place_of),
        (select array_agg(low order by nth) from (select nth, min(place_of) as low from sorted group by nth) g),
        (select array_agg(high order by nth) from (select nth, max(place_of) as high from sorted group by nth) g)
    into ids, changes, names, sources, targets, lists, touches1, touches2
    from sorted;
    n := cardinality(changes);
    -- A key that is written from several sides, and whose path is a circle: the table says where it begins.
    first := 1;
    if keys is not null then
        while first <= n loop
            past := first;
            while past <= n and names[past] = names[first] loop past := past + 1; end loop;
            if lists[first] <> lists[past - 1] then
                is_shared := true;
                if '' = any (sources[first:past - 1]) and '' = any (targets[first:past - 1])
                    or 1 <> (
                        select count(*) from (
                            select from unnest(sources[first:past - 1], targets[first:past - 1]) p (source, target)
                            cross join lateral (values (source, 1), (target, -1)) v (is_as, way)
                            group by v.is_as having sum(way) < 0) e)
                then
                    circuits := circuits || names[first];
                    samples := samples || coalesce(nullif(sources[first], ''), targets[first])::json;
                end if;
            end if;
            first := past;
        end loop;
        if not is_shared then return; end if;
        if circuits <> '{}' then
            present := roost.rows_now(watched, keys, samples);
        end if;
    end if;
    following := array_fill(0, array[n]);
    waits := array_fill(0, array[cardinality(ids)]);
    moves := array_fill(false, array[cardinality(ids)]);
    first := 1;
    while first <= n loop
        past := first;
        heads := '{}'; ends := '{}';
        while past <= n and names[past] = names[first] loop
            if past = first or lists[past] <> lists[past - 1] then
                if past > first then ends := ends || past; end if;
                heads := heads || past;
            end if;
            past := past + 1;
        end loop;
        ends := ends || past;
        length := cardinality(heads);
        last := 0;
        if length > 1 and keys is not null then
            -- Each once for every piece of the path that ends there.
            stops := array(
                select e.is_as from (
                select v.is_as, -sum(way) as times, max(nth) filter (where way = -1) as nth from unnest(
                    sources[first:past - 1], targets[first:past - 1], changes[first:past - 1]) p (source, target, nth)
                cross join lateral (values (source, 1), (target, -1)) v (is_as, way)
                group by v.is_as having sum(way) < 0) e, generate_series(1, e.times)
                order by e.nth desc);
            c := array_position(circuits, names[first]);
            state := coalesce(present[c], case when present is not null and c is not null then '' end);
            if state is null or not state = any (targets[first:past - 1]) then
                state := coalesce(stops[1], targets[ends[1] - 1]);
            end if;
        end if;
        -- From its end, which is known, to its beginning.
        for t_nth in reverse past - 1..first loop
            if length = 1 then
                t := t_nth;
            else
                best := 0; best_score := -1;
                for i in 1..length loop
                    t := ends[i] - 1;
                    continue when t < heads[i];
                    score := 0;
                    if keys is null then
                        score := 1;
                        for j in 1..i - 1 loop
                            if targets[t] <> '' and ends[j] > heads[j] and sources[ends[j] - 1] <> '' then
                                score := 0;
                            end if;
                        end loop;
                        if score >= best_score then best := i; best_score := score; end if;
                        continue;
                    end if;
                    if targets[t] = state then
                        score := 2;
                        for j in 1..length loop
                            after := case when j = i then t - 1 else ends[j] - 1 end;
                            if after >= heads[j] and targets[after] = sources[t] and cardinality(stops) < 2 then
                                score := 3;
                            end if;
                        end loop;
                    elsif targets[t] = any (stops) then
                        score := 1;
                    end if;
                    if score > best_score
                        or score = best_score and score < 3 and changes[t] > changes[ends[best] - 1]
                    then
                        best := i; best_score := score;
                    end if;
                end loop;
                t := ends[best] - 1;
                ends[best] := t;
            end if;
            state := sources[t];
            if last > 0 then
                following[t] := last;
                waits[changes[last]] := waits[changes[last]] + 1;
            end if;
            last := t;
        end loop;
        first := past;
    end loop;
    rest := array(select generate_series(1, cardinality(ids)));
    while rest <> '{}' loop
        again := '{}';
        foreach c in array rest loop
            if waits[c] > 0 then
                again := again || c;
                continue;
            end if;
            if moves[c] then moved := moved || ids[c]; end if;
            t := touches1[c];
            loop
                if following[t] > 0 then
                    after := changes[following[t]];
                    waits[after] := waits[after] - 1;
                    if moves[c] or c > after then moves[after] := true; end if;
                end if;
                exit when t = touches2[c];
                t := touches2[c];
            end loop;
        end loop;
        if cardinality(again) = cardinality(rest) then
            -- circle: not one order for all
            waits[again[1]] := 0;
        end if;
        rest := again;
    end loop;
    if moved = '{}' then return; end if;
    if cardinality(moved) <= 20 then
        for n in 1..cardinality(moved) loop
            update roost.change set id = default where xid = mine and id = moved[n];
        end loop;
        return;
    end if;
    with taken as (
        delete from roost.change c using unnest(moved) with ordinality m (id, nth)
        where c.xid = mine and c.id > floor and c.id = m.id
        returning c.*, m.nth
    )
    insert into roost.change (id, xid, relid, op, reduced, at, record, old_record, row_text, old_row_text)
    overriding system value
    select nextval('roost.change_id_seq'), t.xid, t.relid, t.op, t.reduced, t.at, t.record, t.old_record, t.row_text, t.old_row_text
    from (select * from taken order by nth) t;
end
$$;

-- The short way for one row: true if the changes behind `floor` are a statement's own of one row and a chain that follows it, which are
-- put behind it; not where the row ends as it began, as then the table has to be asked.
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
        or versions[own operator(pg_catalog.-) 1] is not distinct from befores[own]
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

-- Ends a trigger's part of a statement that began at `place`, and puts changes in order where there are nested ones.
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
    -- Of this depth: behind what its present statement lies, and what triggers fired since, each with what it recorded.
    slot constant pg_catalog.int4 := depth operator(pg_catalog.*) 3 operator(pg_catalog.+) 1;
    floor pg_catalog.int8;
    fired pg_catalog.text[] := '{}';
    mine pg_catalog.int4;
    ranges pg_catalog.int8range[] := '{}';
begin
    if setting operator(pg_catalog.<>) '' then
        begin
            state := setting;
            if state[1] operator(pg_catalog.=) stamp then
                deepest := greatest(depth, state[3]::pg_catalog.int4);
                if state[slot] is null then
                    floor := state[2];
                    for shallower in reverse depth operator(pg_catalog.-) 1..1 loop
                        floor := greatest(floor, state[shallower operator(pg_catalog.*) 3 operator(pg_catalog.+) 3]
                            ::pg_catalog.int8);
                    end loop;
                else
                    floor := state[slot];
                    fired := pg_catalog.string_to_array(state[slot operator(pg_catalog.+) 1], ' ');
                    mine := pg_catalog.array_position(fired, me);
                    if mine is not null then
                        -- A statement runs each of its triggers once, so that the present one came later.
                        floor := pg_catalog.upper(fired[mine operator(pg_catalog.+) 1]::pg_catalog.int8range)
                            operator(pg_catalog.-) 1;
                        fired := fired[mine operator(pg_catalog.+) 2:];
                    end if;
                    -- What was recorded less deep came before this statement began.
                    for shallower in 1..depth operator(pg_catalog.-) 1 loop
                        if state[shallower operator(pg_catalog.*) 3 operator(pg_catalog.+) 3]::pg_catalog.int8
                            operator(pg_catalog.>) floor
                        then
                            floor := state[shallower operator(pg_catalog.*) 3 operator(pg_catalog.+) 3];
                            fired := '{}';
                        end if;
                    end loop;
                    if pg_catalog.cardinality(fired) operator(pg_catalog.>) 0 then
                        ranges := array(
                            select fired[n operator(pg_catalog.+) 1]::pg_catalog.int8range
                            from pg_catalog.generate_series(1, pg_catalog.cardinality(fired), 2) n
                            where pg_catalog.rtrim(fired[n], 'IUD') operator(pg_catalog.=) watched::pg_catalog.text);
                    end if;
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
        fired := '{}';
        deepest := depth;
    elsif deepest operator(pg_catalog.>) depth
        and (pg_catalog.cardinality(ranges) operator(pg_catalog.>) 0 or not roost.follow(watched, floor, place))
    then
        perform roost.reorder(watched, floor, place, ranges);
    end if;
    state[3] := deepest;
    state[slot] := floor;
    state[slot operator(pg_catalog.+) 1] := pg_catalog.array_to_string(
        fired operator(pg_catalog.||) array[me, pg_catalog.concat('[', place, ',', recorded, ']')], ' ');
    state[slot operator(pg_catalog.+) 2] := pg_catalog.currval('roost.change_id_seq');
    -- An assignment, as PERFORM runs a query.
    setting := pg_catalog.set_config('roost.nested', state::pg_catalog.text, true);
end
$$;

revoke execute on function
    roost.settle(oid, text, bigint), roost.follow(oid, bigint, bigint), roost.reorder(oid, bigint, bigint, int8range[]),
    roost.rows_now(oid, text[], json[])
from public;
