-- Notes how the sending of alerts to phones ended: $1 messages, $2 tokens, $3 environments, $4 bundles, $5 outcomes.
-- Locks: their rows, which nobody else writes.
update roost.alert_device d set outcome = s.outcome
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) s (message, token, environment, bundle, outcome)
where d.message = s.message and d.token = s.token and d.environment = s.environment and d.bundle = s.bundle
