-- Whose an activity ($1) is, what it is about, and with what role and claims it was registered.
-- Locks: none.
select user_id, conversation, role, claims from roost.push_activity where id = $1 and ended_at is null
