-- Phones and Live Activities that may be notified, and the alerts that are to be sent.
--
-- Invariants
--   * A token belongs to whoever registered it last. Tokens are hexadecimal digits in lower case.
--   * claims are those of the verified token at the registration, without exp and iat: what a user may be told of a row
--     is asked of the policies with the newest of them (Bearers.sql).
--   * Nobody but its own user changes the token of an activity, or hears of it.
--   * timestamp of an activity only grows, and is written before a push leaves, by the hub that owns it (node) and by
--     none else: so timestamps strictly increase, whatever hub sends, and whatever is restarted.
--   * An alert is there once for a message and a user, whatever hub saw the row first. It waits (due, held, elsewhere)
--     until it is taken, expired or dropped, and then never waits again, unless the hub that took it gives it back
--     because it never left (GiveBackAlerts.sql). It stays as long as a hub may read the same row anew, so that it is
--     not written twice (PruneAlerts.sql).
--   * A row of alert_device commits before its push leaves, and goes only if the push never left: at most one push for
--     a message and a phone, whatever user the phone belongs to meanwhile. Without an outcome it may have left or not.
--   * All of it is logged: a promoted standby must neither forget a phone nor alert twice.
-- Lock order: rows of roost.alert by (message, user_id) bytewise, or with skip locked; then roost.alert_device by its
-- primary key; rows of roost.push_activity by id, or with skip locked. Rows of roost.push_device by none of these, so
-- each statement on them takes those of one user and the new token.

create table roost.push_device (
    token text not null check (token ~ '^[0-9a-f]+$' and octet_length(token) <= 1024),
    environment text not null check (environment in ('sandbox', 'production')),
    bundle text not null check (octet_length(bundle) <= 300),
    kind text not null check (kind in ('alert', 'start')),
    attributes_type text check (octet_length(attributes_type) <= 300),
    user_id text not null,
    session text,
    role text not null,
    claims jsonb not null,
    registered_at timestamptz not null default clock_timestamp(),
    primary key (token, environment, bundle, kind),
    check ((kind = 'start') = (attributes_type is not null))
);
create index push_device_user on roost.push_device (user_id);
comment on table roost.push_device is 'Phones that alerts, or the starts of Live Activities, may be sent to.';

create table roost.push_activity (
    id text primary key check (octet_length(id) between 1 and 300),
    user_id text not null,
    session text,
    role text not null,
    claims jsonb not null,
    token text not null check (token ~ '^[0-9a-f]+$' and octet_length(token) <= 1024),
    environment text not null check (environment in ('sandbox', 'production')),
    bundle text not null check (octet_length(bundle) <= 300),
    conversation text check (octet_length(conversation) <= 1000),
    node text not null,
    started_at timestamptz not null default clock_timestamp(),
    registered_at timestamptz not null default clock_timestamp(),
    timestamp bigint not null default 0,
    version integer not null default 0,
    state text,
    posted boolean not null default false,
    delivered bigint not null default 0,
    ended_at timestamptz
) with (fillfactor = 70);
create index push_activity_user on roost.push_activity (user_id);
create index push_activity_node on roost.push_activity (node) where ended_at is null;
create index push_activity_token on roost.push_activity (token) where ended_at is null;
create index push_activity_ended on roost.push_activity (ended_at) where ended_at is not null;
comment on table roost.push_activity is 'Live Activities; each is updated by one hub (node).';
comment on column roost.push_activity.timestamp is 'aps.timestamp of the newest state, in seconds since 1970.';
comment on column roost.push_activity.posted is 'A backend said the state, so no template speaks for the activity.';
comment on column roost.push_activity.delivered is 'timestamp of the newest state that APNs took.';
comment on column roost.push_activity.state is 'The newest content-state, as JSON.';

create table roost.alert (
    message text not null,
    user_id text not null,
    conversation text,
    variables text not null,
    expires_at timestamptz not null,
    state text not null
        check (state in ('due', 'held', 'elsewhere', 'dropped', 'taken', 'expired')),
    due_at timestamptz not null,
    node text not null,
    created_at timestamptz not null,
    taken_at timestamptz,
    primary key (message, user_id)
);
create index alert_due on roost.alert (due_at) where state in ('due', 'held', 'elsewhere');
create index alert_user on roost.alert (user_id, due_at, message) where state in ('due', 'held', 'elsewhere');
create index alert_created on roost.alert (created_at);
comment on table roost.alert is 'Alerts to users who are away: a queue, and the memory of what was alerted.';
comment on column roost.alert.state is
    'due: to be sent; held: the user is in a grace window of node until due_at; elsewhere: node saw the user online at '
    'another hub, which is given until due_at to say so; dropped: the user is back; taken: node sends it, or has.';
comment on column roost.alert.variables is 'What templates may use, as JSON.';

create table roost.alert_device (
    message text not null,
    token text not null,
    environment text not null,
    bundle text not null,
    user_id text not null,
    node text not null,
    registered_at timestamptz not null,
    taken_at timestamptz not null default clock_timestamp(),
    outcome text,
    primary key (message, token, environment, bundle)
) with (fillfactor = 80);
comment on table roost.alert_device is 'Which phones an alert was sent to, or was about to.';

create table roost.push_hub (
    node text primary key,
    at timestamptz not null
);
comment on table roost.push_hub is 'When each hub that sends pushes was there last.';

-- Without a condition on activities that have ended: with one Postgres 15 reads all of them for each user.
create view roost.push_user as
    select user_id from roost.push_device
    union all
    select user_id from roost.push_activity;
comment on view roost.push_user is
    'Users with a phone or a Live Activity, be it one that has ended, some more than once; for audience statements.';

-- A hub that was there less than 30 s ago lives, and so do its sockets.
create view roost.living_user as
    select o.user_id, o.node
    from roost.online_user o
    left join roost.sign_of_life l on l.node = o.node
    left join roost.push_hub h on h.node = o.node
    left join roost.cursor c on c.node = o.node
    where greatest(o.since, l.at, h.at, c.stored_at) > statement_timestamp() - interval '30 seconds';
comment on view roost.living_user is 'Users who are online at a hub that lives.';

-- Hubs that are not the owner, and were granted what a hub does, go on doing it.
do $$
declare
    hub oid;
begin
    for hub in
        select grantee from pg_class c, aclexplode(c.relacl)
        where c.oid = 'roost.change'::regclass and privilege_type = 'DELETE' and grantee <> c.relowner and grantee <> 0
    loop
        execute format(
            'grant select, insert, update, delete on roost.push_device, roost.push_activity, roost.alert, '
            'roost.alert_device, roost.push_hub to %s', hub::regrole);
        execute format('grant select on roost.push_user, roost.living_user to %s', hub::regrole);
    end loop;
end
$$;
