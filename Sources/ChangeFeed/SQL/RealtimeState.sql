-- What roost's triggers find of realtime.messages: the table, roost's enabled trigger on it, and who this session is.
-- Locks: none.
select c.oid is not null,
       exists (
           select from pg_trigger t
           where t.tgrelid = c.oid and t.tgfoid = 'roost.on_message()'::regprocedure and t.tgenabled <> 'D'
       ),
       quote_ident(current_user),
       exists (select from pg_policy p where p.polrelid = c.oid)
from (values (1)) one (row)
left join pg_namespace n on n.nspname = 'realtime'
left join pg_class c on c.relnamespace = n.oid and c.relname = 'messages' and c.relkind in ('r', 'p')
