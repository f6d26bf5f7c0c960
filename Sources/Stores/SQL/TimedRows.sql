-- Rows that are pushed when a time in them has come (alerts.timed). The parts in braces are those of one such column:
-- see TimedTable.swift.
--
-- Invariants
--   * Due rows are found in the application's table by an index on the column and without the operator's condition: no
--     row can make that query fail, and however many rows fall due in the future, only those due now are read.
--   * No push is early: the database's clock decides what is due.
-- Lock order: SchemaPush.sql.

-- name: OpenTimedSource
-- Records that the rows of a column ($1) are pushed from now on, if no hub has done so. Returns since when, in
-- milliseconds since 1970.
-- Locks: its row.
with opened as (
    insert into roost.timed_source (source, since, looked_at) values ($1, statement_timestamp(), statement_timestamp())
    on conflict (source) do nothing
    returning since
)
select floor(extract(epoch from since) * 1000)::bigint from opened
union all
select floor(extract(epoch from since) * 1000)::bigint from roost.timed_source where source = $1
limit 1

-- name: NoteTimedLook
-- Records that a hub has looked for due rows of a column ($1).
-- Locks: its row.
update roost.timed_source set looked_at = statement_timestamp()
where source = $1 and looked_at < statement_timestamp() - interval '5 seconds'

-- name: MissedTimedRows
-- The number of rows that fell due after a hub last looked ($1, the column), and more than $2 milliseconds ago, so that
-- they are too old to be pushed; counts up to 100,000.
-- Locks: none.
select count(*) from (
    select from {rows}
    where {column} > (select s.looked_at from roost.timed_source s where s.source = $1){zone}
        and {column} > (select s.since from roost.timed_source s where s.source = $1){zone}
        and {column} <= (statement_timestamp() - $2::bigint * interval '1 ms'){zone}
        and (select r.message from roost.timed_row r where r.source = $1 and r.due_at = {due} and r.key = {key} limit 1) is null
        and not coalesce((select {unless} from (select t.*) {name}), false)
    limit 100000
) missed

-- name: TakeTimedRows
-- Claims for this hub ($1) the rows of a column ($2) that fell due between $3 and $4 milliseconds ago, at most $5 rows,
-- earliest first; messages begin with $6. If $7 is used, it holds the keys of the rows in question.
--
-- Invariants
--   * It is its own transaction: the session that reads the answer has the rows, and others get them only after this
--     session has ended.
--   * Keys are shorter than those of messages may be, because they are a part of these.
--   * Claims are looked up one by one by their index: a join would be a nested loop without the index until the table
--     is analyzed, which takes longer than a session may for 10,000 rows due at once.
-- Locks: new rows of roost.timed_row by (due_at, key); waits for the end of a transaction that inserts the same row.
with due as materialized (
    select {key} as key, {due} as due_at
    from {rows}
    where {column} > (statement_timestamp() - $3::bigint * interval '1 ms'){zone}
        and {column} <= (statement_timestamp() - $4::bigint * interval '1 ms'){zone}
        and {column} > (select s.since from roost.timed_source s where s.source = $2){zone}
        and octet_length({key}) <= 700
        and (select r.message from roost.timed_row r where r.source = $2 and r.due_at = {due} and r.key = {key} limit 1) is null
    order by {column}
    limit $5::int
)
insert into roost.timed_row (source, due_at, key, message, node, session, taken_at)
select $2, due_at, key, $6 || ' ' || key || ' @' || round(extract(epoch from due_at) * 1000000)::bigint, $1, pg_backend_pid(),
       clock_timestamp()
from due
order by due_at, key collate "C"
on conflict do nothing
returning key, message, round(extract(epoch from due_at) * 1000000)::bigint

-- name: NextTimedRow
-- In how many milliseconds the next row falls due, if it does within $1.
-- Locks: none.
select ceil(extract(epoch from ({due}) - clock_timestamp()) * 1000)::bigint
from {rows}
where {column} > statement_timestamp(){zone} and {column} <= (statement_timestamp() + $1::bigint * interval '1 ms'){zone}
order by {column}
limit 1

-- name: RetakeTimedRows
-- Takes over, for this hub ($1), claims of columns ($2) that are not settled and whose session has ended, at most $3. A
-- claim that is half a minute old counts as abandoned, because the session of a machine that vanished ends only later:
-- even if work is done twice, no user is alerted twice.
-- Locks: rows of roost.timed_row that no session has locked.
with lost as materialized (
    select r.source, r.due_at, r.key
    from roost.timed_row r
    where r.settled_at is null and r.source = any ($2::text[])
        and (r.taken_at < statement_timestamp() - interval '30 seconds' or r.node = $1 and r.session <> pg_backend_pid()
            or not exists (select from pg_stat_activity a where a.pid = r.session))
    order by r.source, r.due_at, r.key
    limit $3::int
    for update of r skip locked
)
update roost.timed_row r set node = $1, session = pg_backend_pid(), taken_at = clock_timestamp()
from lost l
where r.source = l.source and r.due_at = l.due_at and r.key = l.key
returning r.source, r.key, r.message, round(extract(epoch from r.due_at) * 1000000)::bigint

-- name: ReadTimedRows
-- Reads rows by their keys ($1): the key's index, when the row is due (microseconds since 1970), whether it is done,
-- whether it is too large, and the row in the feed's formats. A row that is gone is missing; a time at which nothing
-- can be pushed, such as infinity, is null.
-- Locks: none.
select k.number - 1,
       case when {column} > '1970-01-01' and {column} < '9000-01-01' then round(extract(epoch from {due}) * 1000000)::bigint end,
       coalesce((select {unless} from (select t.*) {name}), false), {size} > 524288,
       case when {size} <= 524288 then (select row_to_json(x.*) from (select t.*) x) end,
       case when {size} <= 524288 then (select roost.row_text(x.*, null, 4) from (select t.*) x) end
from unnest($1::text[]) with ordinality k (key, number)
join {rows} on {match}

-- name: SettleTimedRows
-- Stores the outcomes of claims: $1 columns, $2 times in microseconds since 1970, $3 keys, $4 outcomes.
-- Locks: their rows, by (source, due_at, key).
with settled as materialized (
    select r.source, r.due_at, r.key, s.outcome
    from unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) s (source, due, key, outcome)
    join roost.timed_row r on r.source = s.source and r.key = s.key
        and r.due_at = timestamptz 'epoch' + s.due * interval '1 microsecond'
    where r.settled_at is null
    order by r.source, r.due_at, r.key
    for update of r
)
update roost.timed_row r set settled_at = statement_timestamp(), outcome = s.outcome
from settled s
where r.source = s.source and r.due_at = s.due_at and r.key = s.key

-- name: TimedMessages
-- Those of some messages ($1) that are times of rows, with their rows.
-- Locks: none.
select message, source, key, round(extract(epoch from due_at) * 1000000)::bigint from roost.timed_row where message = any ($1::text[])

-- name: PruneTimedRows
-- Deletes claims of times more than $1 seconds ago, at most $2 of each column. Rows from before that time are not
-- looked up any more.
-- Locks: claims that no session has locked; then rows of roost.timed_source by source.
with old as materialized (
    select r.source, r.due_at, r.key
    from roost.timed_source s cross join lateral (
        select o.source, o.due_at, o.key from roost.timed_row o
        where o.source = s.source and o.due_at < statement_timestamp() - $1::bigint * interval '1 second'
        order by o.due_at limit $2::int
        for update skip locked
    ) r
), gone as (
    delete from roost.timed_row r using old o where r.source = o.source and r.due_at = o.due_at and r.key = o.key
    returning r.source
), moved as (
    update roost.timed_source s
    set since = greatest(s.since, statement_timestamp() - $1::bigint * interval '1 second')
    where s.source in (select source from gone)
)
select count(*) from gone

-- name: ExamineTimedColumn
-- Whether a column ($1 schema, $2 table, $3 column) can be queried: whether the hub's role may read the table, whether
-- row level security hides rows from it, and whether a suitable index exists. No row if there is no such column.
-- Locks: none beyond those of reading the catalog.
select has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), row_security_active(c.oid),
       exists (
           select from pg_index i join pg_class x on x.oid = i.indexrelid join pg_am m on m.oid = x.relam
           where i.indrelid = c.oid and i.indkey[0] = a.attnum and i.indpred is null and i.indisvalid and m.amname = 'btree')
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where n.nspname = $1 and c.relname = $2 and a.attname = $3 and c.relkind in ('r', 'p')

-- name: ExamineTimedCondition
-- The plan of a query with the operator's condition, which fails if that is no valid condition.
-- Locks: none.
explain select coalesce((select {unless} from (select t.*) {name}), false) from {rows}

-- name: TimedHistory
-- For `roost doctor`: for a column ($1), the seconds since a hub last looked; the number of rows that were pushed more
-- than $2 milliseconds late within the last day, and the greatest delay in seconds. No row if no hub ever looked.
-- Locks: none.
select floor(extract(epoch from statement_timestamp() - s.looked_at))::bigint, l.late, l.most
from roost.timed_source s cross join lateral (
    select count(*) as late, ceil(extract(epoch from max(r.settled_at - r.due_at)))::bigint as most
    from roost.timed_row r
    where r.source = s.source and r.outcome = 'alerted' and r.settled_at > statement_timestamp() - interval '1 day'
        and r.due_at > s.since and r.settled_at > r.due_at + $2::bigint * interval '1 ms'
) l
where s.source = $1
