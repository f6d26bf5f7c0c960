-- Who may come back to this hub ($1); no row at all where that is not known of everybody, and a row of nulls where it is
-- known that there is nobody.
-- Locks: none.
select s.key, s.sessions
from roost.session_list l
join roost.cursor c on c.node = l.node and c.list_turn = l.turn
left join roost.session s on s.node = l.node
where l.node = $1
