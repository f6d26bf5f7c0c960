-- The evaluation of a table's policies.

-- name: PolicySession
-- The settings of the sessions that evaluate policies, besides Sessions.sql.
--
-- Invariants
--   * A policy sees the settings that its database and the hub's role start with, as it would in PostgREST's session: a
--     policy may compare days. The texts of records mean the same under any of them.
--   * A policy is planned once, not for each user: a plan costs more than its result.
--   * Nothing written here has to survive: every transaction that runs a policy is rolled back.
reset "TimeZone";
reset "DateStyle";
reset "IntervalStyle";
set application_name = 'roost policies';
set plan_cache_mode = force_generic_plan;
set max_parallel_workers_per_gather = 0;
set jit = off;
set synchronous_commit = off;
set default_transaction_isolation = 'read committed'

-- name: PolicyDescription
-- The facts that decide whether a role may read or write the rows of a table: always one row.
-- $1: the table's oid. $2: the role's name. $3: 'r' for SELECT, 'a' for INSERT (the letters of pg_policy.polcmd).
--
-- Invariants
--   * search_path is pg_catalog, pg_temp: pg_get_expr() then qualifies every other name.
--   * is_restricted is what row_security_active() returns for the current user, computed for another one (check_enable_rls
--     in Postgres' rls.c): superusers and BYPASSRLS are exempt from policies, and so is a role with the privileges of the
--     table's owner, unless row level security is forced.
--   * The choice of policies, and of their expressions, follows Postgres (rowsecurity.c): policies for the command and for
--     all commands; for INSERT the check, or without one the condition; a policy with neither does not count.
--   * columns may name too many (read by the policy's other expression, or by a subquery of the table itself), never too
--     few: a reference to the whole row or to a system column, which leaves no trace in pg_depend, sets reads_row. There,
--     too, a subquery may set it unnecessarily.
--   * columns_sent is what a record must have: a domain may refuse to be null, so a table with a domain gets whole rows.
--     marks identifies each of them by number, type and name: a column that was renamed, dropped or created again is a
--     different one.
--   * json_columns are those of columns_sent whose null JSON does not distinguish from SQL's, nested_columns those that
--     contain such values (roost.value_form).
--   * Names are compared as text: a cast to name would cut a longer one down to another role's.
-- Locks: none beyond those of reading the catalog.
with asked as (
    select c.oid, c.relname, c.relnamespace, c.relowner, c.relrowsecurity, c.relforcerowsecurity, r.oid as role,
           r.rolsuper or r.rolbypassrls as is_beyond
    from (values ($1::oid, $2::text)) as question (relid, role)
    left join pg_class c on c.oid = question.relid
    left join pg_roles r on r.rolname::text = question.role
), policies as (
    select p.oid, p.polname, p.polpermissive, p.polrelid,
           case when $3::text = 'a' then coalesce(p.polwithcheck, p.polqual) else p.polqual end as tree
    from asked join pg_policy p on p.polrelid = asked.oid
    where p.polcmd in ('*', $3::"char") and (
        0::oid = any (p.polroles)
        or exists (select from unnest(p.polroles) as member (oid) where pg_has_role(asked.role, member.oid, 'usage'))
    )
), expressions as (
    select oid, polname, polpermissive, pg_get_expr(tree, polrelid) as text, tree::text ~ ':varattno (0|-)' as reads_row
    from policies where tree is not null
), named as (
    select coalesce(o.pronamespace, t.typnamespace, c.relnamespace, q.oprnamespace, l.collnamespace) as oid
    from expressions e
    join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = e.oid
    left join pg_proc o on d.refclassid = 'pg_proc'::regclass and o.oid = d.refobjid
    left join pg_type t on d.refclassid = 'pg_type'::regclass and t.oid = d.refobjid
    left join pg_class c on d.refclassid = 'pg_class'::regclass and c.oid = d.refobjid
    left join pg_operator q on d.refclassid = 'pg_operator'::regclass and q.oid = d.refobjid
    left join pg_collation l on d.refclassid = 'pg_collation'::regclass and l.oid = d.refobjid
), whole as (
    select coalesce((select bool_or(reads_row) from expressions), false) as reads_row
), attributes as (
    select a.attname, concat_ws(':', a.attnum, a.atttypid, a.attname) as mark, t.typtype = 'd' as is_domain,
           roost.value_form(a.atttypid) as form,
           exists (
               select from expressions e
               join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = e.oid
                   and d.refclassid = 'pg_class'::regclass and d.refobjid = a.attrelid and d.refobjsubid = a.attnum
           ) as is_read
    from asked
    join pg_attribute a on a.attrelid = asked.oid and a.attnum > 0 and not a.attisdropped
    join pg_type t on t.oid = a.atttypid
), columns as (
    select attname, mark, is_read, form,
           is_read or whole.reads_row or exists (select from attributes where is_domain) as is_sent
    from attributes cross join whole
)
select
    asked.role is not null as role_exists,
    coalesce(pg_has_role(asked.role, case when current_setting('server_version_num')::int >= 160000 then 'set'
        else 'member' end), false) as is_assumable,
    current_user as hub,
    has_database_privilege(current_database(), 'temp') as may_create_functions,
    n.nspname as table_schema,
    asked.relname as table_name,
    coalesce(has_schema_privilege(asked.role, n.oid, 'usage'), false) as may_use_schema,
    $3::text <> 'a' or coalesce(has_any_column_privilege(asked.role, asked.oid, 'insert'), false) as may_write,
    asked.relrowsecurity and not asked.is_beyond
        and (asked.relforcerowsecurity or not pg_has_role(asked.role, asked.relowner, 'usage')) as is_restricted,
    (select string_agg(text, ' OR ' order by polname) from expressions where polpermissive) as permissive,
    (select string_agg(text, ' AND ' order by polname) from expressions where not polpermissive) as restrictive,
    whole.reads_row,
    (select json_agg(attname) from columns where is_read) as columns_read,
    (select json_agg(attname) from columns where is_sent) as columns_sent,
    (select coalesce(array_agg(mark), '{}')::text from columns where is_sent) as marks,
    (
        select string_agg(distinct quote_ident(s.nspname), ', ')
        from named join pg_namespace s on s.oid = named.oid
        where not has_schema_privilege(asked.role, s.oid, 'usage')
    ) as unusable_schemas,
    (select json_agg(attname) from columns where is_sent and form = 'json') as json_columns,
    (select json_agg(attname) from columns where is_sent and form in ('nested', 'names')) as nested_columns
from asked cross join whole left join pg_namespace n on n.oid = asked.relnamespace

-- name: PolicyFunction
-- The function that evaluates a table's policies for one role. Names in braces are filled in.
create function pg_temp.{name}(
    claims text[], subjects text[], topics text[], ends int[], picks int[], records json[], wants_reads boolean,
    patience interval
) returns table (subject int, seen int[], state text, message text, reads oid[], key text) language plpgsql as {body};
grant execute on function pg_temp.{name} to public

-- name: PolicyBody
-- Returns the records that each subject may see: subject i asks for records[picks[ends[i - 1] + 1 .. ends[i]]]. A row with
-- a null subject concerns all of them: seen has the records that are not rows of the table, reads the tables that were
-- read.
--
-- Invariants
--   * One execution of the policies per subject: whatever they keep for the duration of a statement (a subquery on
--     auth.uid(), say) never reaches another subject.
--   * Nothing that a subject's policies do outlives its turn: neither its settings, nor whatever a policy's function keeps
--     in other settings. So each turn is a subtransaction that ends in an error, RO000 on success. Its locks go with it,
--     which is why the tables read are recorded within the turn.
--   * It runs as the role in question. A role's policies never run as the hub.
--   * The member with an empty name has the texts of a record's JSON nulls, by column (JudgedRecord). They are inserted
--     after json_populate_record, which makes SQL's nulls of them.
--   * Fails closed: whatever raises an error is hidden, from that subject alone; of several records each is then tried by
--     itself, unless the error (class 42, 0A, XX) is one of the policy and not of a record.
--   * The table has the columns it had when this was written, at the end too: a plan does not notice that a column was
--     renamed, and reads it as null.
--   * A wait for a lock is not a subject's result: a SELECT would also wait for a session that locks the table against
--     reading. The statement then fails, so that the wait counts for all its subjects (PolicySession.askEachSubject). An
--     error that a policy raises itself is its subject's alone, whatever the SQLSTATE: serialization failures and
--     deadlocks, too.
--   * Statements here can name no column but the policies' own, and those win over variables.
-- Locks: those of the policies, for a turn.
#variable_conflict use_column
declare
    rows_ {type}[];
    marks constant text[] := {marks};
    bad int[] := '{}';
    row_ {type};
    nulls_ json;
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
    end;
    {nulls}
    if pg_catalog.cardinality(bad) > 0 then
        for i in 1 .. pg_catalog.cardinality(ends) loop
            b := ends[i];
            kept := kept || array(select p.k from pg_catalog.unnest(picks[a:b]) as p (k) where not p.k = any (bad));
            ends[i] := pg_catalog.cardinality(kept);
            a := b + 1;
        end loop;
        picks := kept;
        a := 1;
    end if;
    perform pg_catalog.set_config('request.headers', '{}', true),
        pg_catalog.set_config('request.jwt.claim.role', {role}, true);
    for i in 1 .. pg_catalog.cardinality(claims) loop
        subject := i;
        seen := '{}';
        state := null;
        message := null;
        key := null;
        b := ends[i];
        failed := a = b;
        if not failed then
            answer := null;
            begin
                perform pg_catalog.set_config('request.jwt.claims', claims[i], true),
                    pg_catalog.set_config('request.jwt.claim.sub', subjects[i], true),
                    pg_catalog.set_config('realtime.topic', topics[i], true);
                {key}
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
    key := null;
    reads := array(
        select distinct coalesce(pg_catalog.pg_partition_root(c.oid), c.oid)
        from pg_catalog.unnest(locks) as l (oid) join pg_catalog.pg_class c on c.oid = l.oid
        where c.oid >= 16384 and c.relkind in ('r', 'p', 'm', 'f')
    );
    return next;
end

-- name: PolicyNulls
-- Puts the JSON nulls into the rows of a table with json columns: a part of PolicyBody. {columns} are lines made from
-- PolicyNull.
for i in 1 .. pg_catalog.cardinality(records) loop
    continue when i = any (bad);
    begin
        nulls_ := records[i] operator(pg_catalog.->) '';
        continue when nulls_ is null;
        row_ := rows_[i];
        {columns}
        rows_[i] := row_;
    exception when others then
        bad := bad || i;
    end;
end loop;

-- name: PolicyNull
-- Puts a JSON null into one column: a line of PolicyNulls.
if nulls_ operator(pg_catalog.->>) {literal} is not null then
    row_.{column} := nulls_ operator(pg_catalog.->>) {literal};
end if;

-- name: PolicyKey
-- The key by which rows of a members table concern a subject (MemberReads): a part of PolicyBody. {expression} is an
-- expression of the subject's settings. If it fails, the key is unknown, and each row concerns the subject.
begin
    key := ({expression})::pg_catalog.text;
exception when others then
    key := null;
end;

-- name: PolicyStored
-- The policies as a function whose names are resolved by the hub, for a role that may not use a schema they name: Postgres
-- resolves a policy's names when it is created, so a role that reads the table needs no right to them.
--
-- Invariant: this function lives in a transaction that is rolled back. It depends on the objects it names, so if it stayed,
-- they could not be dropped or altered; and its body is parsed here, not run.
set local search_path = pg_catalog, pg_temp;
create function pg_temp.{name}_stored(rows_ {type}[], picks int[]) returns setof int language sql stable begin atomic
    {query};
end;
grant execute on function pg_temp.{name}_stored to public;
set local search_path to default

-- name: DeletedTables
-- The tables from which transactions deleted rows, at most $3 from each: the transaction's index in the lists of ids ($1)
-- and of places in the WAL ($2), and the table's oid.
-- Locks: none.
select d.transaction, d.relid from roost.deleted_tables($1::xid8[], $2::pg_lsn[], $3::int4) d
