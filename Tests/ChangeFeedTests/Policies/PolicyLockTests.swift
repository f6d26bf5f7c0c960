import ChangeFeed
import Hub
import Matching
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Policies that wait for locks, or fail as if they did: it concerns those whom they are asked for.
    @Suite struct PolicyLockTests {
        /// Looks into a table only for those whose name begins with `bad`.
        static let members = """
            create table members (who text); insert into members values ('ann'); grant select on members to public;
            create function is_member() returns boolean language plpgsql stable as
                $$ begin return exists (select from members); end $$;
            """

        static func failing(with state: String) -> String {
            """
            create function fails() returns boolean language plpgsql stable as
                $$ begin raise exception 'not now' using errcode = '\(state)'; end $$;
            """
        }

        static var limits: PolicyLimits {
            var limits = PolicyLimits()
            limits.question = .milliseconds(300)
            return limits
        }

        @Test("a lock that all wait for is nobody's answer, and soon costs nobody any time")
        func all() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                \(Self.members) create policy p on notes using (exists (select from members where who = sub()));
                create table fine (id int); alter table fine enable row level security; insert into fine values (1);
                create policy p on fine using (true); grant select on fine to policy_user
                """, limits: Self.limits)
            let fine = try stage.table("fine")
            let fineRecords = try stage.records(of: fine)
            let users: [PolicyUser] = .named("bob", "cat", "dan", "eve", "ann")
            func question(_ table: Table, _ records: [[UInt8]]) -> PolicyQuestion {
                PolicyQuestion(
                    table: table, command: .select, role: "policy_user", rows: records,
                    subjects: users.map { .init(claims: $0.claims("policy_user"), rows: Array(records.indices)) },
                    wantsTablesRead: true)
            }
            let questions = [question(table, records), question(fine, fineRecords)]
            try #expect(stage.ask(questions)[0].visible == [[], [], [], [], [0, 1, 2]])
            let other = try stage.database.session()
            try other.runScript("begin; lock table members")
            for _ in 0..<20 {
                let answers = try stage.ask(questions)
                #expect(answers[0].visible == [[], [], [], [], []] && answers[0].locked == [0, 1, 2, 3, 4])
                #expect(answers[0].undecided == [0, 1, 2, 3, 4] && answers[0].ending.isEmpty)
                #expect(answers[0].tablesRead != nil && answers[0].columnsRead != nil, "no scope is disproved")
                #expect(answers[0].problems.contains { $0.contains("wait for a lock for 5 user(s)") })
                #expect(answers[1].visible == [[0], [0], [0], [0], [0]])
            }
            try other.runScript("rollback")
            try eventually("an answer") { try stage.ask(questions)[0].locked.isEmpty }
            try #expect(stage.ask(questions)[0].visible == [[], [], [], [], [0, 1, 2]])
        }

        @Test("a lock that some wait for hides the rows from nobody else")
        func some() throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                \(Self.members) create policy p on notes using (case when sub() like 'bad%' then is_member() else true end)
                """, limits: Self.limits)
            let users: [PolicyUser] = .named("bad1", "bad2", "bad3", "bad4", "bad5", "ann", "bob")
            let other = try stage.database.session()
            try other.runScript("begin; lock table members")
            // The first few may look as if all waited.
            try eventually("the others") {
                try stage.ask(table, records: records, users: users).locked == [0, 1, 2, 3, 4]
            }
            let answer = try stage.ask(table, records: records, users: users)
            #expect(answer.visible == [[], [], [], [], [], [0, 1, 2], [0, 1, 2]])
            #expect(answer.undecided == [0, 1, 2, 3, 4])
            try other.runScript("rollback")
            try eventually("all") {
                try stage.ask(table, records: records, users: users).visible == Array(repeating: [0, 1, 2], count: 7)
            }
        }

        @Test("a policy that cannot be shown, as a table that it names is locked, waits as well")
        func plans() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "\(Self.members) create policy p on notes using (exists (select from members))", limits: Self.limits)
            let other = try stage.database.session()
            try other.runScript("begin; lock table members")
            for _ in 0..<3 {
                let answer = try stage.ask(table, records: records, users: .named("ann"))
                #expect(answer.locked == [0] && answer.ending.isEmpty && answer.visible == [[]])
            }
            try other.runScript("rollback")
            try eventually("an answer") {
                try stage.ask(table, records: records, users: .named("ann")).visible == [[0, 1, 2]]
            }
        }

        @Test(
            "what a policy raises is its subject's alone, also where Postgres means by it that asking again helps",
            arguments: ["40001", "40P01", "55P03", "57014", "53200"])
        func errors(state: String) throws {
            let (stage, table, records) = try PolicyStage.notes(
                """
                \(Self.failing(with: state))
                create policy p on notes using (case when sub() = 'bad' then fails() else true end)
                """)
            for _ in 0..<3 {
                let answer = try stage.ask(table, records: records, users: .named("ann", "bad", "bob"))
                #expect(answer.visible == [[0, 1, 2], [], [0, 1, 2]])
                #expect(answer.failed == [1] && answer.ending.isEmpty)
            }
        }

        @Test(
            "a row on which a policy raises such an error stops nobody's feed",
            arguments: ["40001", "40P01", "55P03"])
        func feed(state: String) throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                """
                \(Self.failing(with: state))
                create policy failing on messages as restrictive for select to authenticated
                using (case when body = 'poison' and me() = 'bob' then fails() else true end)
                """)
            try SubscriberStage.with(database) { stage in
                let binding = #"{"event":"*","schema":"public","table":"messages"}"#
                let marker = #"{"event":"*","schema":"public","table":"marker"}"#
                let group = try stage.join(binding, marker, as: "ann", "bob")
                try database.run("insert into messages values (1, 1, 'before'), (2, 1, 'poison'), (3, 1, 'after')")
                try stage.settle(database)
                let shown = { (subject: String) in
                    stage.shown(subject, group).compactMap { data in
                        ["before", "poison", "after"].first { data.contains($0) }
                    }
                }
                #expect(shown("ann") == ["before", "poison", "after"])
                try eventually("the rest", within: .seconds(30)) { shown("bob") == ["before", "after"] }
                #expect(stage.statistics.connections == 1)
            }
        }

        @Test("a members table that is locked for long holds up nobody else, and who is hidden changes is told twice")
        func lockedTable() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let binding = #"{"event":"*","schema":"public","table":"messages"}"#
                let marker = #"{"event":"*","schema":"public","table":"marker"}"#
                let group = try stage.join(binding, marker, as: "ann", "bob")
                // Nobody may see it, and nobody waits for it.
                let other = try stage.join(marker, as: "cat")
                try database.run("insert into messages values (1, 1, 'before')")
                try stage.settle(database)
                let locker = try database.session()
                try locker.runScript("begin; lock table participants")
                try database.run("insert into messages values (2, 1, 'unseen')")
                try stage.settle(database)
                #expect(!stage.shown("ann", group).contains { $0.contains("unseen") })
                #expect(!stage.shown("cat", other).isEmpty)
                try eventually("a word", within: .seconds(30)) {
                    try stage.settle(database)
                    return Set(stage.told.map(\.subject)) == ["ann", "bob"]
                }
                #expect(stage.told.count == 2)
                #expect(stage.told.allSatisfy { $0.message.contains("is locked") })
                // What is committed behind that word comes.
                try database.run("insert into messages values (3, 1, 'behind')")
                try stage.settle(database)
                try locker.runScript("rollback")
                try eventually("what waited") { stage.shown("ann", group).contains { $0.contains("behind") } }
                try eventually("another word") { stage.told.count == 4 }
                #expect(stage.told.suffix(2).allSatisfy { $0.message.contains("are shown to you again") })
                #expect(stage.statistics.connections == 1)
            }
        }

        @Test("of private channels that are asked about together, those are answered that are not to blame")
        func channels() throws {
            let stage = try AuthorityStage(
                """
                \(Self.members) \(Self.failing(with: "40001"))
                create policy p on realtime.messages for select to authenticated using (
                    case current_setting('request.jwt.claims')::json ->> 'sub'
                        when 'failing' then fails() when 'waiting' then is_member() else true end);
                grant usage on schema realtime to authenticated; grant select on realtime.messages to authenticated
                """)
            let locker = try stage.database.session()
            try locker.runScript("begin; lock table members")
            let users = ["ann", "failing", "bob", "waiting", "cat"]
            let questions = users.map {
                AuthorizationQuestion(
                    claims: AuthorityStage.claims("authenticated", $0), topic: "room", right: .read(replay: nil))
            }
            try #expect(stage.ask(questions).map(\.words) == ["all", "failed: error", "all", "unavailable", "all"])
            try locker.runScript("rollback")
            try eventually("an answer") { try stage.rights("authenticated", "waiting") == "all" }
        }
    }
}
