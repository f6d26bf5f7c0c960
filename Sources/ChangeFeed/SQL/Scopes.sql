-- The declared scopes (of table $1, an oid, or all where it is null) and what is wrong with them: one row per problem,
-- one with a null problem for a declaration without any. The hub uses those only.
--
-- Invariants
--   * Wrong here means: visibility may depend on more than the scope column and the members tables. What the policies
--     read is taken from their parsed form (pg_node_tree), and through row level security, views and inheritance, from
--     what these read in turn. In doubt a problem is reported.
--   * What a function reads is not seen here; `roost doctor` therefore compares sample rows too.
--   * A column is the table's own where it is varno 1 and as many levels up as it stands in queries (token, part: which
--     QUERY nodes are open). Were a version of Postgres to write this otherwise, the counts would differ: a problem.
--   * kind is `watch` where `roost watch` mends it, `gone` where a table is, `policy` otherwise.
-- Locks: none.
with recursive declared as (
    select s.relid::oid as relid, s.scope_column, s.members::oid[] as members,
           case when c.oid is not null then format('%I.%I', n.nspname, c.relname) end as name, c.relrowsecurity, a.attnum
    from roost.scope s
    left join pg_class c on c.oid = s.relid
    left join pg_namespace n on n.oid = c.relnamespace
    left join pg_attribute a
        on a.attrelid = s.relid and a.attname = s.scope_column and a.attnum > 0 and not a.attisdropped
    where $1::oid is null or s.relid = $1::oid
), read (scope, relid) as (
    select relid, relid from declared where relrowsecurity
    union
    select r.scope, x.relid::oid
    from read r join pg_class c on c.oid = r.relid
    cross join lateral (
        select m[1] from pg_policy p, regexp_matches(p.polqual::text, ':relid (\d+) ', 'g') m
        where c.relrowsecurity and p.polrelid = c.oid and p.polcmd in ('r', '*')
        union all
        select m[1] from pg_rewrite w, regexp_matches(w.ev_action::text, ':relid (\d+) ', 'g') m
        where c.relkind = 'v' and w.ev_class = c.oid
        union all
        select i.inhrelid::text from pg_inherits i
        where c.relkind = 'r' and c.oid <> r.scope and i.inhparent = c.oid
    ) x (relid)
), expression (scope, relid, what, tree) as (
    select r.scope, r.relid, format('the policy %I of %s', p.polname, r.relid::regclass), p.polqual::text
    from read r join pg_class c on c.oid = r.relid join pg_policy p on p.polrelid = c.oid
    where c.relrowsecurity and p.polcmd in ('r', '*')
    union all
    select r.scope, r.relid, format('the view %s', r.relid::regclass), w.ev_action::text
    from read r join pg_class c on c.oid = r.relid join pg_rewrite w on w.ev_class = c.oid
    where c.relkind = 'v'
), token as materialized (
    -- What the tree opens and closes, with the depth inside what is opened, and outside what is closed.
    select e.scope, e.what, t.place, t.m[1] as brace, t.m[2] as label,
           sum(case t.m[1] when '{' then 1 else -1 end) over (partition by e.scope, e.what order by t.place) as depth,
           v[1]::int as varno, v[2]::int as attnum, v[3]::int as levels_up
    from expression e
    cross join lateral regexp_matches(e.tree, '((?<!\\)[{}])([A-Z_]*)([^{}]*)', 'g') with ordinality t (m, place)
    left join lateral regexp_match(
        t.m[3], '^ :varno (\d+) :varattno (-?\d+) .*:varlevelsup (\d+) ') v on t.m[1] = '{' and t.m[2] = 'VAR'
    where e.relid = e.scope
), part as (
    select q.scope, q.what, q.place as opened, (
        select min(c.place) from token c
        where c.scope = q.scope and c.what = q.what and c.place > q.place and c.brace = '}' and c.depth = q.depth - 1
    ) as closed
    from token q where q.label = 'QUERY'
), own as (
    select distinct t.scope, t.what, t.attnum from token t
    where t.varno = 1 and t.levels_up = (
        select count(*) from part q
        where q.scope = t.scope and q.what = t.what and t.place between q.opened and q.closed
    )
), needed (scope, relid, name) as (
    select d.relid, m.relid, case when c.oid is null then m.relid::text else format('%I.%I', n.nspname, c.relname) end
    from declared d
    cross join lateral unnest(d.members || d.relid) m (relid)
    left join pg_class c on c.oid = m.relid
    left join pg_namespace n on n.oid = c.relnamespace
), problem (scope, kind, what) as (
    select d.relid, 'gone', format('the table with the oid %s is gone', d.relid) from declared d where d.name is null
    union
    select d.relid, 'gone', format('the column %I is gone', d.scope_column)
    from declared d where d.name is not null and d.attnum is null
    union
    select o.scope, 'policy',
           format('%s also reads %s', o.what, string_agg(format('%I', a.attname), ', ' order by a.attnum))
    from own o
    join declared d on d.relid = o.scope
    join pg_attribute a on a.attrelid = o.scope and a.attnum = o.attnum
    where o.attnum > 0 and o.attnum <> coalesce(d.attnum, 0)
    group by o.scope, o.what
    union
    select o.scope, 'policy', format('%s reads whole rows or system columns', o.what) from own o where o.attnum <= 0
    union
    select e.scope, 'policy', format('%s cannot be read on this version of Postgres', e.what)
    from expression e
    where e.relid = e.scope and (select count(*) from regexp_matches(e.tree, ':varattno ', 'g'))
        <> (select count(*) from token t where t.scope = e.scope and t.what = e.what and t.attnum is not null)
    union
    select e.scope, 'policy', format('%s reads that table itself, which is not among the members tables', e.what)
    from expression e join declared d on d.relid = e.scope
    where e.relid = e.scope and e.scope <> all (d.members) and strpos(e.tree, format(':relid %s ', e.scope)) > 0
    union
    select e.scope, 'policy', format('%s depends on the time or on chance', e.what)
    from expression e
    where e.tree ~ '\{SQLVALUEFUNCTION :op [0-8] ' or exists (
        select from regexp_matches(e.tree, ':(?:op)?funcid (\d+) ', 'g') m join pg_proc f on f.oid = m[1]::oid
        where f.pronamespace = 'pg_catalog'::regnamespace
          and (f.provolatile = 'v' or f.proname in ('now', 'transaction_timestamp', 'statement_timestamp'))
    )
    union
    select r.scope, 'policy',
           format('visibility also rests on %s, which is not among the members tables', r.relid::regclass)
    from read r
    join declared d on d.relid = r.scope
    join pg_class c on c.oid = r.relid
    where r.relid <> r.scope and c.relkind <> 'v' and coalesce(pg_partition_root(r.relid), r.relid) <> all (d.members)
    union
    select d.relid, 'gone', format('the members table with the oid %s is gone', n.name)
    from declared d join needed n on n.scope = d.relid
    where n.relid <> d.relid and not exists (select from pg_class c where c.oid = n.relid)
    union
    select n.scope, 'watch', format('%s is not watched, or not wholly', n.name)
    from needed n
    cross join lateral (select relid from pg_partition_tree(n.relid) union select n.relid) t
    join pg_class c on c.oid = t.relid and c.relkind in ('r', 'p')
    cross join unnest('{roost.on_insert(),roost.on_update(),roost.on_delete(),roost.on_truncate()}'::text[]) f (name)
    where not exists (
        select from pg_trigger g
        where g.tgrelid = t.relid and not g.tgisinternal and g.tgenabled <> 'D' and g.tgfoid = to_regprocedure(f.name)
    )
)
select d.relid, coalesce(d.name, d.relid::text), d.scope_column, array_to_string(d.members, ' '),
       (select string_agg(n.name, ', ' order by n.name) from needed n where n.scope = d.relid and n.relid <> d.relid),
       coalesce(d.relrowsecurity, false), p.kind, p.what
from declared d left join problem p on p.scope = d.relid
order by d.relid, p.kind, p.what
