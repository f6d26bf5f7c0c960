-- What tells whether anything went from the outbox (Migration012Losses.sql): its file, the highest transaction of which
-- changes are gone, and those below it of which none are. Part of a window, or alone.
-- Locks: none.
select json_build_array(pg_relation_filenode('roost.change'), pruned_xid::text, array_to_string(unpruned, ','))
from roost.meta
