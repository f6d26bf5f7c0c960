-- Begins a transaction as a user: live_activity.facts is the operator's statement, and row level security decides what
-- it shows. $1 is the role, $2 the claims.
select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)
