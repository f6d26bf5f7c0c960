-- Phones and Live Activities that may be notified, and the alerts that are to be sent.
--
-- Invariants of registrations
--   * A token belongs to whoever registered it last. Tokens are hexadecimal digits in lower case.
--   * A token belongs to one of Apple's environments for ever, so a token of an app is one phone, whatever environment its registrations
--     name. environment is where it is sent; environment_found means that Apple knew it there and not in the other one: no registration
--     changes it any more.
--   * claims are those of the verified token at the registration, without exp and iat: what a user may be told of a row is asked of the
--     policies with the newest of them (Bearers.sql).
--   * A row of push_device with from_app is the application's: Roost read it by alerts.tokens, and it goes when the application has
--     another token there. Its claims are made of the user's id. Whatever a user registers at the hub takes its place. Of these, kind
--     'gone' is a token that Apple called dead: it is kept, and not sent to, for as long as the application has it.
--   * Nobody but its own user changes the token of an activity, or hears of it.
--   * timestamp of an activity only grows, and is written before a push leaves, by the hub that owns it (node) and by none else: so
--     timestamps strictly increase, whatever hub sends, and whatever is restarted.
--   * post is what the backend posted last, {"state": {}, "hub": []}: members that are named in hub are the hub's to fill. Null: the state
--     is the whole of it. It is written when the post comes, so neither a restart nor a hub that takes over loses it.
-- Invariants of alerts
--   * An alert is there once for a message and a user, whatever hub saw the row first. It waits (due, held, elsewhere) until it is taken,
--     expired or dropped, and then never waits again, unless the hub that took it gives it back because it never left
--     (GiveBackAlerts.sql). It stays as long as a hub may read the same row anew, so that it is not written twice (PruneAlerts.sql).
--   * It waits for proof: every hub where the user has sockets says whether the message has certainly arrived there. said has the hubs
--     that have nothing against the alert. It is due when each living hub where the user is online is among them (EnqueueAlerts,
--     DecideAlerts), or when one has said nothing for 30 seconds. reason says why the alert is where it is, in one word, for people.
--   * Alerts that were held for a user fall due at one moment: their order is that of the messages in the outbox (place), which every hub
--     reads alike.
--   * written is the value of the message's column that read positions are compared with (alerts.read_message), as text; null where the
--     message has none. Of several hubs that see a read position move, one tells the user's phones the new number: whoever changes the
--     row of roost.badge (ClaimBadges).
--   * A row of alert_device commits before its push leaves, and goes only if the push never left: at most one push for a message and a
--     token of an app, whatever user the phone belongs to meanwhile, and also if the token's environment is found in between. Without an
--     outcome it may have left or not.
-- Invariants of timed rows (alerts.timed)
--   * The schedule is the application's table, asked by an index on a column: there is no copy of it that could be behind. Here is what
--     became of times that have come. A time of a row (source, due_at, key) is claimed once; who claimed it commits that before anything is
--     made of it. A claim without settled_at belongs to a session of Postgres (node, session), and to whoever takes it over when that has
--     ended.
--   * message is what its alerts are called in roost.alert: whatever is done again about a claim, nobody is alerted twice of one time of
--     one row. Another time of the row is another message.
--   * A claim stays for as long as a hub may look back to its time. Nothing that was due before timed_source.since is looked at: neither
--     what was due before the first hub knew of the column, nor what may have been forgotten.
-- All of it is logged: a promoted standby must neither forget a phone nor alert twice.
-- Lock order: rows of roost.timed_row by (source, due_at, key) bytewise, or with skip locked, and none of any other table meanwhile but
-- those of roost.timed_source by source, behind them. Rows of roost.alert by (message, user_id) bytewise, or with skip locked; then
-- roost.alert_device by its primary key; rows of roost.push_activity by id, or with skip locked; a row of roost.badge alone. Rows of
-- roost.push_device by none of these, so each statement on them takes those of one user and the new token.

create table roost.push_device (
    token text not null check (token ~ '^[0-9a-f]+$' and octet_length(token) <= 1024),
    environment text not null check (environment in ('sandbox', 'production')),
    bundle text not null check (octet_length(bundle) <= 300),
    kind text not null check (kind in ('alert', 'start', 'gone')),
    attributes_type text check (octet_length(attributes_type) <= 300),
    user_id text not null,
    session text,
    role text not null,
    claims jsonb not null,
    registered_at timestamptz not null default clock_timestamp(),
    environment_found boolean not null default false,
    from_app boolean not null default false,
    primary key (token, bundle, kind),
    check ((kind = 'start') = (attributes_type is not null)),
    constraint push_device_gone_check check (kind <> 'gone' or from_app)
);
create index push_device_user on roost.push_device (user_id);
comment on table roost.push_device is 'Phones that alerts, or the starts of Live Activities, may be sent to.';
comment on column roost.push_device.kind is
    'alert: for alerts; start: for the start of Live Activities; gone: Apple called it dead, and the application still has it.';
comment on column roost.push_device.environment_found is 'Apple said that the token is of this environment.';
comment on column roost.push_device.from_app is 'Read from the application''s own table (alerts.tokens).';

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
    ended_at timestamptz,
    environment_found boolean not null default false,
    post text
) with (fillfactor = 70);
create index push_activity_user on roost.push_activity (user_id);
create index push_activity_node on roost.push_activity (node) where ended_at is null;
create index push_activity_token on roost.push_activity (token) where ended_at is null;
create index push_activity_ended on roost.push_activity (ended_at) where ended_at is not null;
comment on table roost.push_activity is 'Live Activities; each is updated by one hub (node).';
comment on column roost.push_activity.timestamp is 'aps.timestamp of the newest state, in seconds since 1970.';
comment on column roost.push_activity.state is 'The newest content-state, as JSON.';
comment on column roost.push_activity.posted is 'A backend said the state, so no template speaks for the activity.';
comment on column roost.push_activity.delivered is 'timestamp of the newest state that APNs took.';
comment on column roost.push_activity.environment_found is 'Apple said that the token is of this environment.';
comment on column roost.push_activity.post is
    'What a backend posted last, as JSON: the state, and the names of the members that the hub fills; null: as state has it.';

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
    place bigint not null default 0,
    said text[] not null default '{}',
    reason text,
    written text,
    primary key (message, user_id)
);
create index alert_due on roost.alert (due_at) where state in ('due', 'held', 'elsewhere');
create index alert_user on roost.alert (user_id, due_at, message) where state in ('due', 'held', 'elsewhere');
create index alert_created on roost.alert (created_at);
comment on table roost.alert is 'Alerts to users who are away: a queue, and the memory of what was alerted.';
comment on column roost.alert.variables is 'What templates may use, as JSON.';
comment on column roost.alert.state is
    'due: to be sent; held: node does not know until due_at at the latest whether the user has the message; elsewhere: a hub where '
    'the user is online has until due_at to say so; dropped: the user has the message; taken: node sends it, or has.';
comment on column roost.alert.place is 'roost.change.id of the message: a user''s alerts are sent in this order.';
comment on column roost.alert.said is 'Hubs that know of nothing against the alert.';
comment on column roost.alert.reason is
    'Why it is sent, waits, or was dropped: away, grace, unproven, lost, unheard, hidden; shown, received; always where nobody was '
    'asked.';
comment on column roost.alert.written is 'Where the message lies among those of its conversation, to be compared with read positions.';

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
    primary key (message, token, bundle)
) with (fillfactor = 80);
comment on table roost.alert_device is 'Which phones an alert was sent to, or was about to.';

create table roost.badge (
    user_id text primary key,
    badge integer,
    pushed_at timestamptz not null
) with (fillfactor = 80);
comment on table roost.badge is
    'The number that was pushed to a user''s phones last because something was read; null where an alert said another since.';

create table roost.push_hub (
    node text primary key,
    at timestamptz not null
);
comment on table roost.push_hub is 'When each hub that sends pushes was there last.';

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
    'alerted: its audience has alerts in roost.alert; done, gone, moved: the row said so when it was read again; other words say why '
    'nobody was alerted.';

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
