-- The function that asks a table's policies for one role. Names in braces are filled in.
create function pg_temp.{name}(
    claims text[], subjects text[], topics text[], ends int[], picks int[], records json[], wants_reads boolean,
    patience interval
) returns table (subject int, seen int[], state text, message text, reads oid[]) language plpgsql as {body};
grant execute on function pg_temp.{name} to public
