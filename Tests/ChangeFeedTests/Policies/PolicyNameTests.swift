import ChangeFeed
import Hub
import Matching
import Testing
import Wire

@testable import PostgresFixtures

extension FeedTests {
    /// Policies on tables, columns and types of every kind and name: each is held against a SELECT as the same user.
    @Suite struct PolicyNameTests {
        /// - Parameter script: creates `name` and its rows; privileges and row level security are added.
        private func check(
            _ script: String, _ name: Name = "t", schema: Name = "public",
            users: [PolicyUser] = .named("ann", "bob"),
            isDecided: Bool = true
        ) throws {
            let table = SQLText.identifier(schema) + "." + SQLText.identifier(name)
            let stage = try PolicyStage(
                script + """
                    ; grant usage on schema \(SQLText.identifier(schema)) to policy_user;
                    grant select on \(table) to policy_user; alter table \(table) enable row level security;
                    """)
            let found = try stage.table(name.text, schema: schema.text)
            let records = try stage.records(of: found)
            let answer = try stage.ask(found, records: records, users: users)
            var shown = 0
            for (index, user) in users.enumerated() {
                let expected = try stage.selected(found, role: "policy_user", user: user, among: records)
                #expect(answer.visible[index] == expected, "\(user.sub)")
                shown += expected?.count ?? 0
            }
            #expect(answer.problems == [])
            // A test whose policy shows everything or nothing would prove nothing.
            #expect(!isDecided || shown > 0 && shown < records.count * users.count)
        }

        @Test func quotedNames() throws {
            try check(
                #"""
                create schema "Chat"; create table "Chat"."Messages {type} $roost$" ("Weird ""column" text, "Id" int);
                insert into "Chat"."Messages {type} $roost$" values
                    ('ann', 1), ('bob', 2), (null, 3), ('it''s \ {one}', 4);
                create policy "p""p" on "Chat"."Messages {type} $roost$" using (
                    "Weird ""column" in (sub(), 'it''s \ {one}')
                    and '$roost$' <> '{many}')
                """#, "Messages {type} $roost$", schema: "Chat")
        }

        @Test(arguments: [
            "t", "rows_", "picks", "records", "roost_row", "k", "a", "b", "s", "j", "seen", "subject", "claims",
            "select",
        ])
        func namesOfTheFunctionsOwn(name: String) throws {
            let quoted = SQLText.identifier(Name(name))
            // A column like the table, columns like the function's variables, and a sub-query that names the table.
            try check(
                """
                create table \(quoted) (\(quoted) text, rows_x int, i int, n int, roost_row_ int, answer text, bad int,
                    ends text);
                insert into \(quoted) (\(quoted), i, n, answer, ends) values
                    ('ann', 1, 2, 'x', 'bob'), ('bob', 2, 2, 'y', 'ann'),
                    ('cas', 3, 4, 'z', 'cas');
                create table friends (who text, whom text); grant select on friends to public;
                insert into friends values ('ann', 'cas'), ('bob', 'bob');
                create policy p on \(quoted) using (\(quoted) = sub() or ends = sub() and i < n or exists (
                    select from friends f where f.who = sub() and f.whom = \(quoted).\(quoted)));
                """, Name(name))
        }

        @Test func wholeRows() throws {
            try check(
                """
                create table t (id int primary key, owner text, tags text[]);
                create function may_see(row_ t) returns boolean language sql stable as
                    $$ select row_.owner = sub() or 'public' = any (row_.tags) $$;
                insert into t values (1, 'ann', '{a,b}'), (2, 'bob', null), (3, 'cas', '{public}'), (4, null, '{}');
                create policy p on t using (may_see(t) and t is distinct from null)
                """)
        }

        @Test func types() throws {
            let hasCitext = try PostgresCluster.shared.database().hasExtension("citext")
            try check(
                #"""
                \#(hasCitext ? "create extension citext;" : "") create type mood as enum ('sad', 'glad');
                create domain name_ as text not null check (value <> ''); create type pair as (x int, y text);
                create table t (
                    id int, n numeric, f float8, ts timestamptz, d date, by bytea, jb jsonb, js json, a int[], e mood,
                    c \#(hasCitext ? "citext" : "text"),
                    dm name_, p pair, iv interval, ch char(4), r int4range, twice int 
                    generated always as (id * 2) stored,
                    x bit varying, dropped int, ip inet, ma int[][]);
                alter table t drop column dropped;
                insert into t (id, n, f, ts, d, by, jb, js, a, e, c, dm, p, iv, ch, r, x, ip, ma) values
                    (1, 'NaN', 'NaN', 'infinity', '-infinity', '\x00ff', '{"who":"ann","n":1.10}', '{"a":[1, 2]}',
                     '{1,null}', 'glad',
                     'ANN', 'ann', '(1,"a ""b"", c")',
                     '-1 day +02:03', 'ab', '[1,5)', '101', '10.0.0.1/8', '{{1,2},{3,4}}'),
                    (2, 1e-20, '-Infinity', '2020-01-01 00:00+13', '0044-03-15 BC', '', '"bob"', '[]', '{}', 'sad',
                     'Bob', 'bob',
                     '(,)', '1 mon', '', 'empty', '', '::1', '{}'),
                    (3, 123456789012345678901234567890.5, 5e-324, '0001-01-01 00:00:00.000001+00 BC', 'infinity', null,
                     '{"who":"bob"}', '{}',
                     null, null, null, 'x', null, null, null, null, null, null, null);
                create policy p on t using (
                    (n = 'NaN' or n = 123456789012345678901234567890.5 or n = 1e-20)
                    and (f = 'NaN' or f = '-Infinity' or f = 5e-324)
                    and (ts = 'infinity' or ts < '2020-01-01' ) and (d < '0001-01-01' or d = 'infinity')
                    and (coalesce(by, '') in ('', '\x00ff')) and (jb ->> 'who' = sub() or jb #>> '{}' = sub())
                    and js::text in ('{"a":[1, 2]}', '[]', '{}') and coalesce(a, '{}') in ('{1,null}', '{}')
                    and coalesce(e, 'sad') >= 'sad' and \#(hasCitext ? "coalesce(c, 'aNn') in ('aNn', 'bOb')" : "true") and dm is not null
                    and coalesce((p).x, 1) = 1 and coalesce(iv, '0') < '2 mon' and coalesce(ch, '') in ('ab', '')
                    and coalesce(r, 'empty') <@ '[1,9)' and twice = 2 * id and coalesce(x, B'101') in (B'101', '')
                    and coalesce(ip, '10.0.0.1/8') in ('10.0.0.1/8', '::1')
                    and coalesce(ma, '{}') in ('{{1,2},{3,4}}', '{}'))
                """#)
        }

        @Test func subqueries() throws {
            try check(
                """
                create table members (room int, who text);
                insert into members values (1, 'ann'), (2, 'bob'), (3, 'ann'), (3, 'bob');
                alter table members enable row level security; create policy m on members using (who = sub());
                create view rooms as select distinct room from members;
                grant select on members, rooms to policy_user;
                create table parted (room int, who text) partition by list (room);
                create table parted1 partition of parted for values in (1, 2);
                create table parted2 partition of parted default;
                insert into parted select * from members; grant select on parted to policy_user;
                create table t (id int, room int); insert into t select g, g % 5 from generate_series(1, 20) g;
                create policy a on t using (room in (select m.room from members m));
                create policy b on t as restrictive using (id > (select count(*) from rooms) * 2
                    or (select sub()) = 'bob'
                    and exists (select from parted where parted.room = t.room and who = 'ann'));
                """)
        }

        @Test func partitions() throws {
            try check(
                """
                create table t (id int, owner text) partition by range (id);
                create table t1 partition of t for values from (0) to (10);
                create table t2 (owner text, id int); alter table t attach partition t2 for values from (10) to (20);
                insert into t values (1, 'ann'), (2, 'bob'), (11, 'ann'), (12, 'cas');
                alter table t1 enable row level security;
                create policy p on t using (owner = sub())
                """)
        }

        @Test func theSessionsOwnSearchPath() throws {
            // lower() of public takes a citext, pg_catalog's takes a text: the policy was made with the one, and a
            // function without a search_path of its own finds what it finds in any session.
            try check(
                """
                create schema elsewhere; grant usage on schema elsewhere to public;
                create function elsewhere.lower(text) returns text language sql immutable as $$ select 'ANN'::text $$;
                create table helper (who text); insert into helper values ('bob'); grant select on helper to public;
                create function helped() returns boolean language plpgsql stable as $$
                    begin return exists (select from helper where who = sub()); end $$;
                create table t (id int, owner text); insert into t values (1, 'ann'), (2, 'bob'), (3, 'CAS');
                set search_path = elsewhere, pg_catalog, public;
                create policy p on t using (lower(owner) = 'ANN' and owner = sub());
                create policy h on t using (helped() and owner = 'CAS');
                reset search_path
                """)
        }

        /// To Postgres a policy's names are looked up once, when it is created.
        @Test(arguments: [false, true]) func aSchemaTheRoleMayNotUse(readsTable: Bool) throws {
            let condition =
                readsTable
                ? "exists (select from private.members m where m.room = t.room)" : "room in (select private.rooms())"
            let script = """
                create schema private; create table private.members (room int, who text);
                insert into private.members values (1, 'ann'), (2, 'bob');
                alter table private.members enable row level security;
                create policy m on private.members to policy_user using (who = sub());
                grant select on private.members to policy_user;
                create function private.rooms() returns setof int language sql stable security definer as
                    'select room from private.members where who = sub()';
                create table t (id int, room int); insert into t select g, g % 3 from generate_series(1, 9) g;
                create policy p on t using (
                    \(condition))
                """
            try check(script + PolicyStage.grantOfSchema("private"))
            // Before 14 the names of a function's body are looked up by whoever runs it. Nothing is shown then, and why.
            guard try PolicyStage.looksNamesUpAnew else { return }
            let stage = try PolicyStage(
                script + "; grant select on t to policy_user; alter table t enable row level security")
            let table = try stage.table("t")
            let answer = try stage.ask(table, records: stage.records(of: table), users: .named("ann"))
            #expect(answer.visible == [[]] && answer.isDenied)
            #expect(answer.problems.first?.hasSuffix(#"grant usage on schema private to "policy_user""#) ?? false)
        }

        @Test func theSameAgainAndAgain() throws {
            let stage = try PolicyStage(
                """
                create schema private;
                create function private.is_me(text) returns boolean language sql stable as 'select $1 = sub()';
                create table t (id int, owner text); insert into t values (1, 'ann'), (2, 'bob');
                grant select on t to policy_user;
                alter table t enable row level security; create policy p on t using (private.is_me(owner))
                """ + PolicyStage.grantOfSchema("private"))
            for _ in 0..<3 { try #expect(stage.visible("t", users: .named("ann", "bob")) == [[0], [1]]) }
            // Nothing of the hub's is in the way of what a policy no longer needs.
            try stage.changed("drop policy p on t; drop function private.is_me; create policy p on t using (true)")
            try #expect(stage.visible("t", users: .named("ann", "bob")) == [[0, 1], [0, 1]])
            try stage.changed("drop table t")
        }
    }
}
