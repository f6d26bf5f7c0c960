-- Devices of other services than Apple's: Android by Firebase Cloud Messaging (fcm), browsers by Web Push (web).
--
-- What was missing: a token was one of Apple's, hexadecimal digits, and of one of Apple's two environments. The column
-- environment now says which service a token is of: Apple's sandbox or production, fcm, or web. All keys and statements that
-- tell devices apart by it stay as they are.
--
-- Invariants
--   * Tokens of different services are never the same text: Apple's are hexadecimal digits, a browser's is its endpoint (an https
--     URL), Firebase's have a colon.
--   * A browser's subscription has keys, nothing else has. Both are base64url: the public key, a dot, the shared secret.
-- Locks: ACCESS EXCLUSIVE on roost.push_device and roost.push_activity, each for as long as a scan of it takes.

alter table roost.push_device
    add keys text check (octet_length(keys) <= 200),
    drop constraint push_device_token_check,
    drop constraint push_device_environment_check,
    add constraint push_device_token_check check (octet_length(token) <= 1024 and case environment
        when 'fcm' then token ~ '^[0-9A-Za-z:_.-]+$'
        when 'web' then token ~ '^https://[!-~]+$'
        else token ~ '^[0-9a-f]+$' end),
    add constraint push_device_environment_check check (environment in ('sandbox', 'production', 'fcm', 'web')),
    add constraint push_device_browser_check check ((environment = 'web') = (keys is not null));
comment on table roost.push_device is 'Devices that alerts, or the starts of Live Activities, may be sent to.';
comment on column roost.push_device.environment is
    'Which service the token is of: Apple''s sandbox or production, fcm (Android), or web (browsers).';
comment on column roost.push_device.keys is 'Of a browser: what is sent to it is encrypted with these.';

alter table roost.push_activity
    drop constraint push_activity_token_check,
    drop constraint push_activity_environment_check,
    add constraint push_activity_token_check check (octet_length(token) <= 1024 and case environment
        when 'fcm' then token ~ '^[0-9A-Za-z:_.-]+$'
        else token ~ '^[0-9a-f]+$' end),
    add constraint push_activity_environment_check check (environment in ('sandbox', 'production', 'fcm'));
comment on column roost.push_activity.environment is
    'Which service the token is of: Apple''s sandbox or production, or fcm (Android).';
