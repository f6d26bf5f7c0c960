-- The roles of clients' tokens that exist but that this session may not become, by the kind of membership ($1) that SET
-- ROLE asks for: SET from Postgres 16 on, MEMBER before.
-- Locks: none.
select quote_ident(rolname), quote_ident(current_user) from pg_roles
where rolname in ('anon', 'authenticated', 'service_role') and not pg_has_role(current_user, oid, $1)
order by rolname
