-- Which of some users ($2) are online at another hub than this one ($1) that lives.
-- Locks: none.
select distinct user_id from roost.living_user where user_id = any ($2::text[]) and node <> $1
