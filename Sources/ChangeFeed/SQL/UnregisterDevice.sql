-- Forgets a token ($1) of a user ($2), whatever it was registered for.
-- Locks: the token's rows.
delete from roost.push_device where token = $1 and user_id = $2
