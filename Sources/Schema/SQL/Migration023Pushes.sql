-- Which of Apple's two environments a token belongs to, once Apple has said so; and what a backend posted of a Live Activity.
--
-- Invariants
--   * A token belongs to one environment for ever, so a token of an app is one phone, whatever environment its registrations name.
--     environment is where it is sent; environment_found means that Apple knew it there and not in the other one: no registration
--     changes it any more.
--   * A message goes to a token of an app once (alert_device), also if the token's environment is found in between.
--   * post is what the backend posted last, {"state": {}, "hub": []}: members that are named in hub are the hub's to fill. Null: the
--     state is the whole of it. It is written when the post comes, so neither a restart nor a hub that takes over loses it.
-- Lock order: as in Migration008Push.sql.
-- Locks: ACCESS EXCLUSIVE on the three tables, while indices are built on the first and the last.

delete from roost.push_device d using roost.push_device o
where o.token = d.token and o.bundle = d.bundle and o.kind = d.kind
    and (o.registered_at, o.environment) > (d.registered_at, d.environment);
alter table roost.push_device drop constraint push_device_pkey, add primary key (token, bundle, kind),
    add environment_found boolean not null default false;
comment on column roost.push_device.environment_found is 'Apple said that the token is of this environment.';

delete from roost.alert_device d using roost.alert_device o
where o.message = d.message and o.token = d.token and o.bundle = d.bundle
    and (o.taken_at, o.environment) > (d.taken_at, d.environment);
alter table roost.alert_device drop constraint alert_device_pkey, add primary key (message, token, bundle);

alter table roost.push_activity add environment_found boolean not null default false, add post text;
comment on column roost.push_activity.environment_found is 'Apple said that the token is of this environment.';
comment on column roost.push_activity.post is
    'What a backend posted last, as JSON: the state, and the names of the members that the hub fills; null: as state has it.';
