-- Who may see a row: scopes, and deleted rows judged as they were, with the members that were deleted with them.
--
-- A scope says that a row's visibility depends on one of its columns only, for as long as some other tables, the members tables, do not
-- change. `roost watch` derives scopes from the policies, or is told them (`--scope`); Scopes.sql judges them.
--
-- Policies are asked after the commit. Of a conversation that was deleted its participants are gone then, by the same statement, so that
-- no policy would show anybody that its messages are gone. So who may hear of a deleted row is asked with its transaction's other deleted
-- rows back where they were: for the length of one question a temporary table with them inherits from theirs, so that every policy, view
-- and function of the session that asks sees them in their table, and nobody else does (Postgres looks into no other session's temporary
-- children).
--
-- Invariants
--   * A declaration never widens what anybody sees: the hub uses it only where Scopes.sql finds nothing wrong with it.
--   * Members tables are watched, TRUNCATE included: every change that may alter an answer is in the outbox.
--   * regclass, so that a dump names tables, and a restored one finds them.
--   * Of a derived scope this table names what the catalog cannot tell: the tables that functions were seen to read, as members. The
--     columns, and the tables that policies name, are read from the policies each time (Scopes in Catalog.sql), so that policies which
--     change take their scope along. scope_column is the first of the columns, for people; it is empty where visibility goes by none.
--     Only `roost watch` writes here; the hub needs no right to.
--   * The caller of revive rolls its transaction back: nothing of this may be committed, as a table with children cannot be altered by
--     others while their session lasts.
--   * Only rows of watched tables that were deleted in that transaction come back, whole or not at all: a row with nulls where nobody
--     knows the values might open what it did not. So rows over the limit stay away, and those of which the WAL has the replica identity
--     alone, and those that JSON does not keep exactly (SchemaRows.sql).
--   * revive runs as its owner, who has to own the tables, or to be a member of the role that does; a hub need not.
-- Lock order: SHARE UPDATE EXCLUSIVE on the tables, by their oids; it waits for none longer than a moment, as the feed waits for the
-- answer. Writers and readers do not wait for it.

create table roost.scope (
    relid regclass primary key,
    scope_column name not null,
    members regclass[] not null,
    derived boolean not null default false
);
comment on table roost.scope is 'Tables whose rows'' visibility depends on scope_column only, as long as the members tables do not change.';
comment on column roost.scope.derived is 'Whether `roost watch` found it in the policies; the columns are then read from them each time.';

-- The transactions under which the outbox has what a transaction wrote: its own, where triggers wrote it. A large one that was read from
-- the WAL is stored in pieces, one behind the other, and what came before `transaction` counts.
create function roost.pieces(transaction xid8, place pg_lsn) returns xid8[]
    language plpgsql stable
    set search_path = pg_catalog, pg_temp
as $$
declare
    pieces xid8[] := array[transaction];
    before record;
begin
    while place is not null and cardinality(pieces) < 1000 loop
        select c.xid, c.lsn into before from roost.change c
        where c.xid < pieces[cardinality(pieces)] order by c.xid desc, c.id desc limit 1;
        exit when before.lsn is distinct from place;
        pieces := pieces || before.xid;
    end loop;
    return pieces;
end
$$;

-- From which tables transactions deleted rows, `most` at most of each; by the number of the transaction.
create function roost.deleted_tables(transactions xid8[], places pg_lsn[], most integer)
    returns table (transaction integer, relid oid)
    language plpgsql stable
    set search_path = pg_catalog, pg_temp
    set enable_seqscan = off
as $$
#variable_conflict use_column
begin
    for number in 1 .. cardinality(transactions) loop
        return query
            select number, c.relid from roost.change c
            where c.xid = any (roost.pieces(transactions[number], places[number])) and c.op = 'D'
                and c.lsn is not distinct from places[number]
            group by c.relid having count(*) <= most;
    end loop;
end
$$;

-- Puts back, for this session and until its transaction ends, what a transaction deleted from some tables. Returns the tables for which
-- that could not be done, each with the reason in its line and whether that is a lock; null where there are none.
create function roost.revive(transaction xid8, place pg_lsn, tables oid[], most integer) returns text
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    set lock_timeout = '300ms'
    set enable_seqscan = off
as $$
declare
    written constant xid8[] := roost.pieces(transaction, place);
    parent record;
    left_out text;
begin
    for parent in
        select c.oid, format('%I.%I', n.nspname, c.relname) as name, c.relkind = 'r' and not c.relispartition as is_plain,
               string_agg(quote_ident(a.attname), ', ' order by a.attnum) filter (where a.attgenerated = '') as columns,
               array_agg(a.attname::text) as keys
        from roost.watched w
        join pg_class c on c.oid = w.oid
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.oid = any (tables)
        group by c.oid, n.nspname, c.relname, c.relkind, c.relispartition
        order by c.oid
    loop
        begin
            if not parent.is_plain then
                raise wrong_object_type using message = 'it is partitioned';
            end if;
            execute format('create temporary table roost_revived_%s () inherits (%s) on commit drop', parent.oid, parent.name);
            execute format(
                'insert into pg_temp.roost_revived_%1$s (%2$s) select %2$s from (select old_record from roost.change '
                'where xid = any ($1) and op = ''D'' and relid = %1$s and lsn is not distinct from $2 and not reduced '
                'and coalesce(old_row_text, '''') = '''' '
                'and $3 <@ array(select json_object_keys(old_record)) limit $4) c, '
                'json_populate_record(null::%3$s, c.old_record)', parent.oid, parent.columns, parent.name)
            using written, place, parent.keys, most;
        exception
            when lock_not_available or deadlock_detected then
                left_out := concat_ws(E'\n', left_out, format('lock %s: %s', parent.name, sqlerrm));
            when others then
                left_out := concat_ws(E'\n', left_out, format('other %s: %s', parent.name, sqlerrm));
        end;
    end loop;
    return left_out;
end
$$;

-- True if a column that is a key means nothing: a uuid, or a number that a sequence gives, which refers to no other table.
create function roost.is_surrogate(watched oid, number integer) returns boolean
    language sql stable
    set search_path = pg_catalog, pg_temp
as $$
    select (
        b.typname = 'uuid' or b.typname in ('int2', 'int4', 'int8') and (
            a.attidentity <> '' or exists (
                select from pg_attrdef d
                where d.adrelid = watched and d.adnum = number and pg_get_expr(d.adbin, d.adrelid) like 'nextval(%'))
    ) and not exists (
        select from pg_constraint k where k.conrelid = watched and k.contype = 'f' and number = any (k.conkey)
    )
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid) and b.typnamespace = 'pg_catalog'::regnamespace
    where a.attrelid = watched and a.attnum = number
$$;

revoke execute on function
    roost.revive(xid8, pg_lsn, oid[], integer), roost.deleted_tables(xid8[], pg_lsn[], integer), roost.pieces(xid8, pg_lsn)
from public;
grant execute on function roost.is_surrogate(oid, integer) to public;
