-- Closes of streams that are committed together with a row of the application's (streams.on_close).
--
-- Invariants
--   * A row is one attempt to close one stream, and its key is never used for another: whoever commits the row of the application and
--     whoever decides that it is not to be committed insert the same key, so that one of them waits for the other and finds that it came
--     too late. So it is known for good what became of an attempt, also of one whose hub was killed while Postgres committed.
--   * A hub deletes its row when the stream's file says the same. What is left of a hub that never came back is a day old.
-- Lock order: none.

create table roost.stream_commit (
    stream bigint not null,
    attempt integer not null,
    given_up boolean not null default false,
    result jsonb,
    at timestamptz not null default now(),
    primary key (stream, attempt)
);
comment on table roost.stream_commit is 'Closes of streams that are being committed with a row of the application''s.';
comment on column roost.stream_commit.stream is 'The id of the stream, whose 64 bits are taken for a number with a sign.';
comment on column roost.stream_commit.given_up is 'It was decided that this attempt is not committed.';
