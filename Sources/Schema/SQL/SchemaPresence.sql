-- Who is present in channels, and which users are online, as the hubs of this database last wrote it down: so that a hub that starts
-- again knows whom its last process served.
--
-- Invariants
--   * presence is no history: a hub writes what changed about once a second, and all of it whenever it connects. It is unlogged because
--     nothing would be gained by WAL: it survives a killed hub and a clean restart of Postgres; after a crash, or on a promoted standby, it
--     is empty, and as every hub's connection was lost then, every hub writes anew.
--   * payload is text, not jsonb: what a client said of itself is given back as it was said, and \u0000 is no error. In topic, key and
--     user_id a backslash is written twice, and \0 stands for the character U+0000.
--   * A row of online_user says that this hub told the application's statement (users.statement) that the user is online, and has not
--     told it the contrary: both commit together (TellUsers.sql). Therefore it is logged.
-- Lock order: none.

create unlogged table roost.presence (
    node text not null,
    ref text not null,
    topic text not null,
    private boolean not null,
    key text not null,
    made_key boolean not null,
    user_id text,
    payload text not null,
    app_state text,
    primary key (node, ref)
);
comment on table roost.presence is 'Who is present in channels, a moment old; each hub (node) owns its rows.';
comment on column roost.presence.made_key is 'The client gave no key, so the hub made this one.';

create table roost.online_user (
    node text not null,
    user_id text not null,
    since timestamptz not null,
    primary key (user_id, node)
);
comment on table roost.online_user is 'Users whom a hub has told the application to be online, where users.statement is configured.';

create unlogged table roost.sign_of_life (
    node text primary key,
    at timestamptz not null
);
comment on table roost.sign_of_life is 'When each hub that has users online was there last: what they were last seen at, if it is killed.';
