-- The column of a table ($1, an oid) that a name as SQL writes it ($2) names.
-- Locks: none.
select a.attname from pg_attribute a
where a.attrelid = $1::oid and a.attnum > 0 and not a.attisdropped and array[a.attname::text] = parse_ident($2)
