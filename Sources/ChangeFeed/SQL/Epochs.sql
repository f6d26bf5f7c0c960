-- What is known of some epochs ($1) that clients' cursors are of: whether the server has run without a break since ($2 is
-- its run); else up to where the hub that gave them out ($3 for those of before there were epochs) certainly got in this
-- server's own history, and whether that was on the same timeline ($4 is today's). What has no row is not known here.
-- Locks: none.
select e.id, e.run is not distinct from $2 and e.run is not null, coalesce(next.seam, c.snapshot),
       coalesce(e.timeline = coalesce(next.timeline, $4::integer), false)
from roost.epoch e
left join lateral (
    select n.seam, n.timeline from roost.epoch n
    where n.node = case when e.id = 0 then $3 else e.node end and n.born > e.born and n.seam is not null
    order by n.born limit 1
) next on true
left join lateral (
    select snapshot from roost.cursor where node = case when e.id = 0 then $3 else e.node end
) c on true
where e.id = any ($1::bigint[]) and (e.id <> 0 or e.timeline is not null)
