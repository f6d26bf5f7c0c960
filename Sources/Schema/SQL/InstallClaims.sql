-- auth.uid(), auth.role() and auth.jwt() for a database that lacks them: what policies ask about the user. Run by every
-- `roost migrate`.
--
-- Invariants
--   * Each is created by itself, and only where no function of that name exists, whatever its arguments.
--   * A single SELECT without a SET clause, so that the planner inlines it: a policy asks auth.uid() for every row.
--   * The settings are PostgREST's: request.jwt.claims, and request.jwt.claim.sub and .role, which its older versions
--     set alone and which spare reading the JSON. Empty counts as missing: a setting that was made in an earlier
--     transaction reads as empty.
--   * A schema `auth` of others stays theirs: no rights on it are granted.
-- Locks: none on what exists.
do $install$
declare
    auth oid := (select oid from pg_catalog.pg_namespace where nspname = 'auth');
    functions name[] := (select array_agg(proname) from pg_catalog.pg_proc where pronamespace = auth);
begin
    if functions @> '{uid,role,jwt}' then
        return;
    end if;
    if not (case
        when auth is null then has_database_privilege(current_database(), 'create')
        else has_schema_privilege(auth, 'create') and has_schema_privilege(auth, 'usage')
    end) then
        raise notice 'roost: % may not create auth.uid(), auth.role() and auth.jwt()', current_user
            using hint = 'Policies that call them need them: run `roost migrate` again as a role that may.';
        return;
    end if;
    if auth is null then
        create schema auth;
        grant usage on schema auth to public;
    end if;
    if 'uid' = any (functions) is not true then
        create function auth.uid() returns uuid language sql stable as $$
            select nullif(coalesce(
                nullif(pg_catalog.current_setting('request.jwt.claim.sub', true), ''),
                nullif(pg_catalog.current_setting('request.jwt.claims', true), '')::pg_catalog.jsonb
                    operator(pg_catalog.->>) 'sub'
            ), '')::pg_catalog.uuid
        $$;
    end if;
    if 'role' = any (functions) is not true then
        create function auth.role() returns text language sql stable as $$
            select nullif(coalesce(
                nullif(pg_catalog.current_setting('request.jwt.claim.role', true), ''),
                nullif(pg_catalog.current_setting('request.jwt.claims', true), '')::pg_catalog.jsonb
                    operator(pg_catalog.->>) 'role'
            ), '')
        $$;
    end if;
    if 'jwt' = any (functions) is not true then
        create function auth.jwt() returns jsonb language sql stable as $$
            select coalesce(
                nullif(pg_catalog.current_setting('request.jwt.claim', true), ''),
                nullif(pg_catalog.current_setting('request.jwt.claims', true), '')
            )::pg_catalog.jsonb
        $$;
    end if;
end
$install$;
