-- What every session of roost's runs first, so that values have the texts the outbox gives them.
-- search_path stays the role's own: operators of extension types are found by it.
set statement_timeout = 0;
set lock_timeout = 0;
set idle_in_transaction_session_timeout = 0;
set "TimeZone" = 'UTC';
set "DateStyle" = 'ISO';
set "IntervalStyle" = 'postgres';
set bytea_output = 'hex';
set extra_float_digits = 1;
set standard_conforming_strings = on;
set client_min_messages = notice;
