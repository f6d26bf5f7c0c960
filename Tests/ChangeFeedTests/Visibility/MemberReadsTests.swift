import Administration
import ChangeFeed
import Postgres
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What policies read of members tables, as Postgres parsed them.
    @Suite struct MemberReadsTests {
        struct Reading {
            let policy: String
            /// Functions and what else the policy needs.
            var before = ""
            /// Accesses as `value/user`, and behind a colon the columns that are read; nil where nothing is known.
            let reads: String?
        }

        private static let mine = """
            create function mine() returns setof int language plpgsql stable security definer set search_path = '' as $$
            begin
                return query
                    select p.conversation from public.participants p where p.member = public.me();
            end $$
            """

        private static let readings = [
            Reading(
                policy: "conversation in (select mine())", before: mine,
                reads: "conversation/member: conversation member"),
            Reading(
                policy: "conversation = any (array(select mine()))", before: mine,
                reads: "conversation/member: conversation member"),
            Reading(
                policy: "conversation in (select m.c from mine() as m (c))", before: mine,
                reads: "conversation/member: conversation member"),
            Reading(
                policy: "is_in(conversation)",
                before: """
                    create function is_in(which int) returns boolean language sql stable as $$
                        select exists (select from participants p where which = p.conversation and p.member = (select me()))
                    $$
                    """, reads: "conversation/member: conversation member"),
            Reading(
                policy: "is_in(id)",
                before: """
                    create function is_in(which int) returns boolean language sql stable as $$
                        select exists (select from participants p where which = p.conversation and p.member = me())
                    $$
                    """, reads: "-/member: conversation member"),
            Reading(
                policy: """
                    exists (select from participants p where p.conversation = messages.conversation and p.member = me()
                    and p.role <> 'guest')
                    """, reads: "conversation/member: conversation member role"),
            Reading(
                policy: """
                    exists (select from participants p where (p.conversation = messages.conversation or p.member = me()))
                    """, reads: "-/-: conversation member"),
            Reading(
                policy: "conversation in (select conversation from participants where role = 'owner')",
                reads: "conversation/-: conversation role"),
            Reading(
                policy: "conversation not in (select conversation from participants where member = me())",
                reads: "conversation/member: conversation member"),
            Reading(
                policy:
                    "conversation in (select conversation from participants where member = me() order by 1 limit 1)",
                reads: "-/member: conversation member"),
            Reading(
                policy: "conversation in (select max(conversation) from participants where member = me())",
                reads: "-/member: conversation member"),
            Reading(
                policy: """
                    conversation in (select conversation from participants where member = me()
                    union select conversation from participants where role = 'all')
                    """, reads: "-/member -/-: conversation member role"),
            Reading(policy: "exists (select from participants p where p is not null)", reads: "-/-: all"),
            Reading(
                policy: "exists (select from participants p left join participants q on q.member = me() "
                    + "where p.conversation = messages.conversation)",
                reads: "conversation/- -/-: conversation member"),
            // What may read anything.
            Reading(
                policy: "conversation in (select mine())",
                before: """
                    create function mine() returns setof int language plpgsql stable as $$
                    begin
                        if me() is null then return; end if;
                        return query select conversation from participants where member = me();
                    end $$
                    """, reads: nil),
            Reading(
                policy: "exists (select from participants p where p.conversation = messages.conversation)",
                before: "alter table participants enable row level security", reads: nil),
            Reading(
                policy: "conversation in (select mine())",
                before: mine
                    + "; alter function mine() security invoker; alter table participants enable row level security",
                reads: nil),
            Reading(
                policy: "conversation in (select conversation from shown)",
                before: "create view shown as select * from participants", reads: nil),
            // No user that is the same from one statement to the next.
            Reading(
                policy:
                    "exists (select from participants p where p.conversation = messages.conversation and p.member = me())",
                before: "create or replace function me() returns text language sql as $$ select 'a'::text $$",
                reads: "conversation/-: conversation member"),
            Reading(
                policy:
                    "exists (select from participants p where p.conversation = messages.conversation and p.member = me())",
                before: """
                    create or replace function me() returns text language sql stable as
                        $$ select member from participants limit 1 $$
                    """, reads: "conversation/- -/-: conversation member"),
        ]

        @Test func tellsWhatIsReadWhere() throws {
            let database = try PostgresCluster.shared.database()
            for reading in Self.readings { try tell(reading, in: database) }
        }

        private func tell(_ reading: Reading, in database: Database) throws {
            try database.run(
                """
                drop schema public cascade; create schema public;
                create table participants (conversation int, member text, role text, last_read_at timestamptz);
                create table messages (id int primary key, conversation int);
                create function me() returns text language sql stable as
                    $$ select nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub' $$;
                alter table messages enable row level security;
                """)
            try database.run(reading.before.isEmpty ? "select 1" : reading.before)
            try database.run("create policy members on messages for select using (\(reading.policy))")
            let connection = try PostgresConnection(database.conninfo)
            let oids = try connection.query("select 'messages'::regclass::oid, 'participants'::regclass::oid")
            let (messages, participants) = (
                try #require(UInt32(oids.text(0, 0) ?? "")), try #require(UInt32(oids.text(0, 1) ?? ""))
            )
            let scope = try Scope(columns: ["conversation"], members: [participants])
                .withReads(of: messages, by: CatalogPolicyLookup(connection), on: connection)
            #expect(scope.reads[participants].map(Self.text) == reading.reads, "\(reading.policy) \(reading.before)")
            #expect(
                scope.userKey == (reading.reads?.contains("/member") ?? false ? "public.me()" : nil),
                "\(reading.policy)")
            #expect(try connection.query("select from pg_proc where proname = 'roost_twin'").count == 0)
        }

        private static func text(_ reads: MemberReads) -> String {
            reads.accesses.map { "\($0.value ?? "-")/\($0.user ?? "-")" }.joined(separator: " ") + ": "
                + (reads.columns?.sorted().map(\.text).joined(separator: " ") ?? "all")
        }

        @Test(arguments: [
            ("begin return x; end", "plpgsql", "select (x)"),
            (" BEGIN\n return query select 1;\nend;", "plpgsql", "select 1"),
            ("begin return query select 1; return; end", "plpgsql", nil),
            ("declare a int; begin return a; end", "plpgsql", nil),
            ("begin return(select 1); end", "plpgsql", "select ((select 1))"), ("select 1;", "sql", "select 1"),
            ("select 1; select 2", "sql", nil), ("begin return ';'; end", "plpgsql", nil), ("return 1", "plv8", nil),
            ("begin returning; end", "plpgsql", nil), ("", "sql", nil), ("end", "plpgsql", nil),
            ("begin end", "plpgsql", nil),
        ]) func functionsThatAreOneQuery(source: String, language: String, query: String?) {
            #expect(CatalogPolicyLookup.singleQuery(source, language: language) == query)
        }

        @Test(arguments: [
            "", "{", "{A", "(", "{A :b", "{A 1}", ")", "{A :b 1 :b 2}", "(1) 2", String(repeating: "(", count: 9999),
        ])
        func whatIsNoTree(text: String) { #expect(NodeTree(text) == nil) }
    }

    /// Whose answers a change of a members table concerns.
    @Suite struct MemberConcernTests {
        private static let scope = {
            var scope = Scope(columns: ["conversation"], members: [1, 2, 3])
            scope.reads = [
                1: MemberReads(columns: ["c", "u"], accesses: [.init(value: "c", user: "u")]),
                2: MemberReads(columns: ["c"], accesses: [.init(value: "c", user: nil)]),
            ]
            return scope
        }()

        private func concern(_ changes: MemberChange...) -> MemberConcern { MemberConcern(of: changes, Self.scope) }

        private func row(_ table: UInt32, _ old: String?, _ new: String?) -> MemberChange {
            .row(table, old: old.map { Array($0.utf8) }, new: new.map { Array($0.utf8) })
        }

        @Test func aRowConcernsItsUserAndValueBeforeAndAfter() {
            let found = concern(row(1, #"{"c":1,"u":"a"}"#, #"{"c":2,"u":"a"}"#))
            #expect(!found.isEverybody && found.values.isEmpty && found.users.isEmpty)
            #expect(found.pairs == [[49]: ["a".hashValue], [50]: ["a".hashValue]])
            #expect(concern(row(2, nil, #"{"c":7,"u":"a"}"#)).values == [[55]])
        }

        @Test func whatNoPolicyReadsConcernsNobody() {
            #expect(concern(row(1, #"{"c":1,"u":"a","seen":1}"#, #"{"c":1,"u":"a","seen":2}"#)).isNobody)
            #expect(concern(row(1, nil, #"{"c":null,"u":"a"}"#)).isNobody)
            #expect(concern(.table(9)).isNobody, "a table that the scope does not rest on")
        }

        @Test func whatIsNotKnownConcernsEverybody() {
            #expect(concern(.table(1)).isEverybody)
            #expect(concern(row(3, nil, #"{"c":1}"#)).isEverybody, "a table that was not understood")
            #expect(concern(row(1, nil, nil)).isEverybody)
            #expect(concern(row(1, nil, #"{"c":1}"#)).isEverybody, "a record that lacks a column")
            #expect(concern(row(1, #"{"u":"a"}"#, #"{"c":1,"u":"a"}"#)).isEverybody)
        }

        @Test func answersOfOthersStay() {
            let people = PrincipalTable()
            let (ann, bob, eve) = (
                people.retainPrincipal(SubscriberStage.claims("ann")),
                people.retainPrincipal(SubscriberStage.claims("bob")),
                people.retainPrincipal(SubscriberStage.claims("eve"))
            )
            var cache = ScopeCache()
            let now = ContinuousClock.now
            func known() -> [Bool] {
                [[UInt8](arrayLiteral: 49), [50]].flatMap { value in
                    [ann, bob, eve].map { cache.findAnswers(7, value, at: now)[$0] != nil }
                }
            }
            func fill() {
                for value in [[UInt8](arrayLiteral: 49), [50]] {
                    cache.findAnswers(7, value, at: now).storeAnswer(true, for: ann, key: "ann")
                    cache.findAnswers(7, value, at: now).storeAnswer(true, for: bob, key: "bob")
                    cache.findAnswers(7, value, at: now).storeAnswer(true, for: eve, key: nil)
                }
            }
            fill()
            cache.forgetAnswers(about: 7, concern(row(1, nil, #"{"c":1,"u":"ann"}"#)))
            #expect(known() == [false, true, false, true, true, true], "and of whom no key is known")
            fill()
            cache.forgetAnswers(about: 7, concern(row(2, nil, #"{"c":2}"#)))
            #expect(known() == [true, true, true, false, false, false])
            fill()
            cache.forgetAnswers(about: 7, concern(.table(1)))
            #expect(known() == [Bool](repeating: false, count: 6))
        }
    }
}
