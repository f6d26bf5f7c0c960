-- Which members tables of scopes a window wrote, as a JSON array of oids, or null: a part of Window.sql, read in its
-- snapshot, so that answers which the window makes wrong are dropped before its first row is judged.
-- Locks: none.
(select json_agg(distinct relid) from (
    select relid from roost.change where xid >= '{xmax}'::xid8 and relid = any ('{{members}}'::oid[])
    union all
    select relid from roost.change where xid = any ('{xip}'::xid8[]) and relid = any ('{{members}}'::oid[])
) written)
