-- The phones of a user ($1), the newest first.
-- Locks: none.
select token, environment, bundle, attributes_type, floor(extract(epoch from registered_at) * 1000)::bigint
from roost.push_device where user_id = $1 order by registered_at desc
