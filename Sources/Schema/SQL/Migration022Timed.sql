-- Rows of the application's tables that are pushed at a time which a column of theirs says (alerts.timed).
--
-- The schedule is the application's table, asked by an index on that column: there is no copy of it that could be behind. What is
-- kept here is what became of times that have come.
--
-- Invariants
--   * A time of a row (source, due_at, key) is claimed once; who claimed it commits that before anything is made of it. A claim
--     without settled_at belongs to a session of Postgres (node, session), and to whoever takes it over when that has ended.
--   * message is what its alerts are called in roost.alert, which is unique by message and user: whatever is done again about a
--     claim, nobody is alerted twice of one time of one row. Another time of the row is another message.
--   * A claim stays for as long as a hub may look back to its time. Nothing that was due before timed_source.since is looked at:
--     neither what was due before the first hub knew of the column, nor what may have been forgotten.
--   * All of it is logged: a promoted standby must not push twice.
-- Lock order: rows of roost.timed_row by (source, due_at, key) bytewise, or with skip locked, and none of any other table
-- meanwhile but those of roost.timed_source by source, behind them.

create table roost.timed_source (
    source text collate "C" primary key,
    since timestamptz not null,
    looked_at timestamptz not null
);
comment on table roost.timed_source is 'Columns of alerts.timed, as SCHEMA.TABLE.COLUMN.';
comment on column roost.timed_source.since is 'What was due before is not pushed.';
comment on column roost.timed_source.looked_at is 'When a hub last looked for what is due.';

create table roost.timed_row (
    source text collate "C" not null,
    due_at timestamptz not null,
    key text collate "C" not null,
    message text collate "C" not null,
    node text not null,
    session integer not null,
    taken_at timestamptz not null,
    settled_at timestamptz,
    outcome text,
    primary key (source, due_at, key)
);
create unique index timed_row_message on roost.timed_row (message);
create index timed_row_taken on roost.timed_row (taken_at) where settled_at is null;
comment on table roost.timed_row is 'What became of the times of rows (alerts.timed) that have come.';
comment on column roost.timed_row.key is 'The primary key of the row, as a JSON array.';
comment on column roost.timed_row.outcome is
    'alerted: its audience has alerts in roost.alert; done, gone, moved: the row said so when it was read again; other words say '
    'why nobody was alerted.';

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format('grant select, insert, update, delete on roost.timed_source, roost.timed_row to %s', hub::regrole);
    end loop;
end
$$;
