-- Puts alerts into the queue, as this hub ($1) sees the users: $2 messages, $3 users, $4 conversations, $5 variables,
-- $6 when they expire and $8 until when they are held (milliseconds since 1970), $7 states, $9 the places of the messages in
-- the outbox, by which a user's alerts are sent. Returns how many are new
-- or were put right.
--
-- Invariants
--   * Every hub that reads a row puts its alerts here; the first one counts. But whoever has the user knows best: that
--     he is live there (dropped) ends an alert that waits, that he is in a grace window there (held) puts it off, and
--     that he is nowhere (due) ends waiting for a hub that does not have him any more.
--   * What is taken, expired or dropped stays so.
--   * Alerts become due in the order of the arrays.
-- Locks: their rows, by (message, user_id) bytewise.
with draft as (
    select distinct on (message collate pg_catalog."C", user_id collate pg_catalog."C") *
    from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::text[], $8::bigint[], $9::bigint[])
        with ordinality n (message, user_id, conversation, variables, expires_at, state, until, change, place)
    order by message collate pg_catalog."C", user_id collate pg_catalog."C", place
), put as (
    insert into roost.alert as a
        (message, user_id, conversation, variables, expires_at, state, due_at, node, created_at, place)
    select message, user_id, conversation, variables, to_timestamp(expires_at / 1000.0), state,
           case state
               when 'held' then to_timestamp(until / 1000.0)
               when 'elsewhere' then statement_timestamp() + interval '30 seconds'
               else statement_timestamp() + place * interval '1 microsecond'
           end,
           $1, statement_timestamp(), change
    from draft
    on conflict (message, user_id) do update
    set state = excluded.state, due_at = excluded.due_at, node = excluded.node
    where a.node <> excluded.node and case a.state
        when 'elsewhere' then excluded.state in ('dropped', 'held') or excluded.state = 'due' and not exists (
            select from roost.living_user l where l.user_id = a.user_id and l.node <> excluded.node)
        when 'due' then excluded.state in ('dropped', 'held')
        when 'held' then excluded.state = 'dropped' or excluded.state = 'held' and excluded.due_at > a.due_at
        else false end
    returning 1
)
select count(*) from put
