-- For each subject the records it may see: subject i asks for records[picks[ends[i - 1] + 1 .. ends[i]]]. A row with
-- subject null tells what concerns all: in seen the records that are no rows of the table, in reads the tables that
-- were read.
--
-- Invariants
--   * One execution of the policies per subject: what they keep for the length of a statement (a sub-query on
--     auth.uid(), say) is never another subject's.
--   * Nothing that a subject's policies do outlives its turn: not its settings, nor what a policy's function keeps in
--     others. So each turn is a subtransaction that ends in an error, RO000 where all went well. Its locks go with it,
--     which is why the tables read are noted within.
--   * It runs as the role that is asked about. A role's policies never run as the hub.
--   * Fails closed: what raises an error is not seen, by that subject alone; with several records each is asked of
--     again by itself, unless the error (class 42, 0A, XX) is one of the policy and not of a record.
--   * The table has the columns it had when this was written, at the end still: a plan does not notice that one was
--     renamed, and reads it as null.
--   * A wait for a lock is nobody's answer: whoever locks a table against reading would have a SELECT wait as well.
--     The statement fails then, and whoever asked asks again.
--   * Statements here can name no column but the policies' own, and those win over variables.
-- Locks: those of the policies, for a turn.
#variable_conflict use_column
declare
    rows_ {type}[];
    marks constant text[] := {marks};
    bad int[] := '{}';
    answer int[];
    failed boolean;
    kept int[] := '{}';
    locks oid[] := '{}';
    a int := 1;
    b int;
begin
    if current_user <> {role} then
        raise exception 'The session did not take the role.';
    end if;
    begin
        select pg_catalog.array_agg(pg_catalog.json_populate_record(null::{type}, j.j) order by j.n) into rows_
        from pg_catalog.unnest(records) with ordinality as j (j, n);
    exception when others then
        for i in 1 .. pg_catalog.cardinality(records) loop
            begin
                rows_[i] := pg_catalog.json_populate_record(null::{type}, records[i]);
            exception when others then
                bad := bad || i;
            end;
        end loop;
        for i in 1 .. pg_catalog.cardinality(ends) loop
            b := ends[i];
            kept := kept || array(select p.k from pg_catalog.unnest(picks[a:b]) as p (k) where not p.k = any (bad));
            ends[i] := pg_catalog.cardinality(kept);
            a := b + 1;
        end loop;
        picks := kept;
        a := 1;
    end;
    perform pg_catalog.set_config('request.headers', '{}', true),
        pg_catalog.set_config('request.jwt.claim.role', {role}, true);
    for i in 1 .. pg_catalog.cardinality(claims) loop
        subject := i;
        seen := '{}';
        state := null;
        message := null;
        b := ends[i];
        failed := a = b;
        if not failed then
            answer := null;
            begin
                perform pg_catalog.set_config('request.jwt.claims', claims[i], true),
                    pg_catalog.set_config('request.jwt.claim.sub', subjects[i], true),
                    pg_catalog.set_config('realtime.topic', topics[i], true);
                answer := {many};
                if wants_reads then
                    locks := locks || array(
                        select l.relation from pg_catalog.pg_locks l
                        where l.pid = pg_catalog.pg_backend_pid() and l.locktype = 'relation'
                            and not l.relation = any (locks)
                    );
                end if;
                raise sqlstate 'RO000';
            exception
                when sqlstate 'RO000' then
                    seen := answer;
                when serialization_failure or deadlock_detected then
                    raise;
                when others or assert_failure then
                    if sqlstate = '55P03'
                        and pg_catalog.clock_timestamp() >= pg_catalog.statement_timestamp() + patience
                    then
                        raise;
                    end if;
                    failed := true;
                    state := sqlstate;
                    message := sqlerrm;
            end;
        end if;
        if failed and (state is null or pg_catalog.left(state, 2) not in ('42', '0A', 'XX')) then
            for k in a .. b loop
                answer := null;
                begin
                    perform pg_catalog.set_config('request.jwt.claims', claims[i], true),
                        pg_catalog.set_config('request.jwt.claim.sub', subjects[i], true),
                        pg_catalog.set_config('realtime.topic', topics[i], true);
                    if {one} then
                        answer := picks[k:k];
                    end if;
                    if wants_reads then
                        locks := locks || array(
                            select l.relation from pg_catalog.pg_locks l
                            where l.pid = pg_catalog.pg_backend_pid() and l.locktype = 'relation'
                                and not l.relation = any (locks)
                        );
                    end if;
                    raise sqlstate 'RO000';
                exception
                    when sqlstate 'RO000' then
                        seen := seen || answer;
                    when serialization_failure or deadlock_detected then
                        raise;
                    when others or assert_failure then
                        if sqlstate = '55P03'
                            and pg_catalog.clock_timestamp() >= pg_catalog.statement_timestamp() + patience
                        then
                            raise;
                        end if;
                        state := sqlstate;
                        message := sqlerrm;
                end;
            end loop;
        end if;
        return next;
        a := b + 1;
    end loop;
    if (
        select pg_catalog.count(*) filter (
                where pg_catalog.concat_ws(':', c.attnum, c.atttypid, c.attname) = any (marks)
            ) <> pg_catalog.cardinality(marks)
            or {whole} and pg_catalog.count(*) <> pg_catalog.cardinality(marks)
        from pg_catalog.pg_attribute c
        where c.attrelid = {table} and c.attnum > 0 and not c.attisdropped
    ) then
        raise undefined_column using message = 'The table has been altered.';
    end if;
    subject := null;
    seen := bad;
    state := null;
    message := null;
    reads := array(
        select distinct coalesce(pg_catalog.pg_partition_root(c.oid), c.oid)
        from pg_catalog.unnest(locks) as l (oid) join pg_catalog.pg_class c on c.oid = l.oid
        where c.oid >= 16384 and c.relkind in ('r', 'p', 'm', 'f')
    );
    return next;
end
