-- Rows read from the WAL: how far a hub has stored them, and what storing them needs.
--
-- With `feed.capture: wal` tables have no triggers. One hub, the leader, reads the changes of the publication `roost` from
-- a logical slot and writes them into roost.change, in batches; whatever reads the outbox knows nothing of it.
--
-- Invariants
--   * capture.lsn moves in the transaction that stores the rows, and from nothing but the place the writer knew
--     (store_begins): of two leaders, one fails. The slot is told only what is committed here. So every row is stored once,
--     whichever process is killed at whatever moment.
--   * All transactions whose commit lies before capture.lsn are stored. Of the one whose commit is at partial_lsn the first
--     partial_rows changes are stored, too: a large transaction is stored in pieces. Postgres decodes a transaction to the
--     same changes each time.
--   * capture.lsn is null while the slot is gone and no other is there: what commits then is read by nobody. Whoever makes
--     the next slot notes that (begin_capture), as for changes that were deleted before they were read
--     (Migration012Losses.sql): clients are told.
--   * change.lsn is the commit of the transaction that changed the row, and change.at the time of that commit; of rows that
--     triggers wrote lsn is null. change.xid is the storing transaction's, so that windows, cursors and pruning are what
--     they were.
--   * A change is stored when everybody sees what it changed. A commit is in the WAL, and read from there, before that: by
--     microseconds, or by as long as a synchronous standby takes. Policies that judge the row would not see what its own
--     transaction wrote elsewhere, and a client that reads it again would not find it.
--   * The ids of a batch are drawn when it begins, and lie in the order of the WAL.
-- Lock order: advisory lock (1919905648, 0) for whoever makes or drops the slot; rows of roost.change; the row of
-- roost.capture; the row of roost.meta.
-- Locks: ACCESS EXCLUSIVE on roost.change for a moment; nothing is rewritten.

alter table roost.change add lsn pg_lsn;
comment on column roost.change.lsn is
    'Where the transaction that changed the row was committed; null where a trigger wrote this.';

create table roost.capture (
    singleton boolean primary key default true check (singleton),
    slot name not null,
    lsn pg_lsn,
    partial_lsn pg_lsn,
    partial_rows bigint not null default 0,
    stored_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table roost.capture is 'How far the changes of the publication roost are stored in roost.change.';

-- The name of the logical slot: slots belong to the server, so it names the database.
create function roost.slot_name() returns name language sql stable as $$
    select ('roost_' || oid)::name from pg_catalog.pg_database where datname operator(pg_catalog.=) current_database()
$$;

-- A slot begins at `place`: what commits from there on will be read. Where another slot was read before, everybody is told
-- that changes are missing. To be called as soon as a slot was made, and where one is found that nobody has read.
-- Returns whether changes are missing.
create function roost.begin_capture(place pg_lsn) returns boolean
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    known name;
    own xid8;
begin
    select slot into known from roost.capture for update;
    if known is distinct from roost.slot_name() then
        -- The first one; another name came with a dump, whose cursors count for nothing here.
        insert into roost.capture (slot, lsn) values (roost.slot_name(), place)
        on conflict (singleton) do update
        set slot = excluded.slot, lsn = excluded.lsn, partial_lsn = null, partial_rows = 0, stored_at = clock_timestamp();
        return false;
    end if;
    update roost.capture set lsn = place, partial_lsn = null, partial_rows = 0, stored_at = clock_timestamp();
    -- This transaction is the one of which a change is gone.
    own := pg_current_xact_id();
    update roost.meta set pruned_xid = own, unpruned = array(
        select x from pg_snapshot_xip(pg_current_snapshot()) x where x < own order by x);
    perform roost.tell_of_deletion();
    return true;
end
$$;

-- Begins the transaction that stores a batch: moves the place from where it was to where it will be, and draws as many ids
-- as there are rows, which the statements of the batch find in the setting roost.ids. `writers` are the transactions that
-- changed the rows, without their epochs.
create function roost.store_begins(
    was pg_lsn, was_partial pg_lsn, was_rows bigint, now pg_lsn, now_partial pg_lsn, now_rows bigint, rows integer,
    writers bigint[]
) returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
declare
    present pg_snapshot;
    newest bigint;
begin
    loop
        present := pg_current_snapshot();
        newest := pg_snapshot_xmax(present)::text::bigint;
        -- Of the ids that end like this, the one that is nearest: the others are two billion transactions away.
        exit when not exists (
            select from unnest(writers) w cross join lateral (select w - newest % 4294967296 as ahead) a
            where not pg_visible_in_snapshot((newest + ahead + case
                when ahead > 2147483648 then -4294967296 when ahead < -2147483648 then 4294967296 else 0 end
            )::text::xid8, present)
        );
        perform pg_sleep(0.0005);
    end loop;
    update roost.capture c
    set lsn = now, partial_lsn = now_partial, partial_rows = now_rows, stored_at = clock_timestamp()
    where c.lsn = was and c.partial_lsn is not distinct from was_partial and c.partial_rows = was_rows;
    if not found then
        raise exception 'roost: another hub stores the changes that are read from the WAL' using errcode = 'RS001';
    end if;
    perform set_config('roost.ids', coalesce((
        select array_agg(nextval('roost.change_id_seq'))::text from generate_series(1, rows)), '{}'), true);
    -- For the statements that follow: a value whose JSON takes without end is an error of its row.
    perform set_config('statement_timeout', '15s', true);
end
$$;

-- Ends it: hubs that sleep are rung for, once.
create function roost.store_ends() returns void
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
as $$
begin
    if roost.must_ring() and roost.may_notify() then
        perform pg_notify('roost', '');
    end if;
end
$$;

-- The JSON of a value that is given as text, whatever may be wrong with it: a domain's rule may have changed since, its
-- type be gone, or a cast to json that somebody wrote fail. Then it is a text. OTHERS leaves two errors out.
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

revoke execute on function
    roost.begin_capture(pg_lsn),
    roost.store_begins(pg_lsn, pg_lsn, bigint, pg_lsn, pg_lsn, bigint, integer, bigint[]),
    roost.store_ends(), roost.text_as_json(text, text)
from public;

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant insert on roost.change to %s', hub::regrole);
        execute format('grant select, insert, update, delete on roost.capture to %s', hub::regrole);
        execute format('grant execute on function roost.begin_capture(pg_lsn), '
            'roost.store_begins(pg_lsn, pg_lsn, bigint, pg_lsn, pg_lsn, bigint, integer, bigint[]), roost.store_ends(), '
            'roost.text_as_json(text, text), roost.reduced(json) to %s', hub::regrole);
    end loop;
end
$$;
