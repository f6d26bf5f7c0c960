-- An alert waits for proof: every hub where the user has sockets says whether the message has certainly arrived there.
--
-- Invariants
--   * said has the hubs that have nothing against the alert. It is due when each living hub where the user is online is among them
--     (EnqueueAlerts, DecideAlerts), or when one has said nothing for 30 seconds.
--   * reason says why the alert is where it is, in one word, for people who look.
-- Lock order: as in Migration008Push.sql.
-- Locks: ACCESS EXCLUSIVE on roost.alert for a moment.

alter table roost.alert add said text[] not null default '{}', add reason text;
comment on column roost.alert.said is 'Hubs that know of nothing against the alert.';
comment on column roost.alert.reason is
    'Why it is sent, waits, or was dropped: away, grace, unproven, lost, unheard, hidden; shown, received; '
    'always where nobody was asked.';
comment on column roost.alert.state is
    'due: to be sent; held: node does not know until due_at at the latest whether the user has the message; elsewhere: a hub where the '
    'user is online has until due_at to say so; dropped: the user has the message; taken: node sends it, or has.';
