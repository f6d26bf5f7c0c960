-- Rows that are committed with the closes of streams (SchemaStreams.sql has the invariants).
-- Locks: the row of one attempt in roost.stream_commit, until its transaction ends.

-- name: StreamSession
-- The settings of the session, besides Sessions.sql. A close is answered once it is committed, so a commit waits for
-- the disk.
set application_name = 'roost streams';
set lock_timeout = '5s';
set statement_timeout = '10s';
set idle_in_transaction_session_timeout = '15s';
set jit = off;
select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off';

-- name: BeginCommit
-- Begins to commit the attempt ($2) to end a stream ($1): fails if it was given up.
insert into roost.stream_commit (stream, attempt) values ($1, $2)

-- name: BecomeBearer
-- Makes the rest of the transaction run as the user who ends the stream: $1 is the role, $2 the claims.
select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)

-- name: EndCommit
-- Stores the result of the application's statement ($3), again as the hub, whose role the session has.
update roost.stream_commit set result = $3::jsonb where stream = $1 and attempt = $2

-- name: PreparedClose
-- Whether a statement of `streams.on_close`, which this session has prepared as roost_close, takes at most the
-- parameters $1 to $5.
-- Locks: none.
select cardinality(parameter_types) <= 5 from pg_prepared_statements where name = 'roost_close'

-- name: SettleCommit
-- Whether an attempt exists. Waits for one that is under way; gives up one that does not exist, for good.
with mine as (
    insert into roost.stream_commit (stream, attempt, given_up) values ($1, $2, true)
    on conflict (stream, attempt) do nothing
    returning given_up
)
select not exists (select from mine)

-- name: CommitResult
-- Whether an existing attempt was given up, and the result of the application's statement.
-- Locks: none.
select given_up, result from roost.stream_commit where stream = $1 and attempt = $2

-- name: ForgetCommit
-- Deletes an attempt whose outcome the stream's file records.
delete from roost.stream_commit where stream = $1 and attempt = $2

-- name: PruneCommits
-- Locks: rows that are a day old; those that another session has locked are left for the next time.
delete from roost.stream_commit c using (
    select stream, attempt from roost.stream_commit where at < now() - interval '1 day' for update skip locked
) o where c.stream = o.stream and c.attempt = o.attempt
