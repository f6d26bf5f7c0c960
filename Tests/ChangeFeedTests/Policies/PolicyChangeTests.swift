import ChangeFeed
import Foundation
import Hub
import Matching
import Postgres
import TestSupport
import Testing
import Wire

@testable import PostgresFixtures

extension FeedTests {
    /// Policies that change, hang or cannot be reached while they are asked.
    @Suite struct PolicyChangeTests {
        @Test func policiesChange() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (owner = sub())")
            func visible() throws -> [Int] { try stage.ask(table, records: records, users: .named("ann")).visible[0] }
            try #expect(visible() == [0, 2])
            try stage.changed("alter policy p on notes using (owner <> sub())")
            try #expect(visible() == [1])
            try stage.changed("alter table notes disable row level security")
            try #expect(visible() == [0, 1, 2])
            try stage.changed("alter table notes enable row level security; drop policy p on notes")
            try #expect(visible() == [])
        }

        /// A policy that is narrowed counts a second later for what is committed then, be the window that reads it as late as it
        /// may: it was sent before, when the catalog had been found current a moment ago.
        @Test func whatIsNarrowedCountsAfterASecondWhateverTakesLong() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"messages"}"#,
                    #"{"event":"*","schema":"public","table":"marker"}"#, as: "ann")
                try database.run(
                    """
                    drop policy of_mine on messages;
                    create policy p on messages for select to authenticated using (true)
                    """)
                let writer = try database.session()
                // The feed reads window after window, of which one in hundreds brings the catalog's version along.
                let end = ContinuousClock.now + .milliseconds(800)
                while .now < end { try writer.runScript("insert into marker values ('x')") }
                try writer.runScript(
                    "begin; insert into marker values ('last'); lock table roost.change in access exclusive mode")
                let waiting = "select count(*) from pg_locks where not granted and relation = 'roost.change'::regclass"
                try eventually("a window waits") { try database.value(waiting) != "0" }
                try database.run("alter policy p on messages using (false)")
                usleep(1_100_000)
                try writer.runScript("insert into messages values (1, 1, 'too late'); commit")
                try stage.settle(database)
                #expect(stage.shown("ann", group).allSatisfy { !$0.contains("too late") })
            }
        }

        @Test func aTableChangesUnnoticed() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (owner = sub())")
            func ask() throws -> PolicyAnswer { try stage.ask(table, records: records, users: .named("ann", "bob")) }
            try #expect(ask().visible == [[0, 2], [1]])
            try stage.session.runScript("alter table notes rename to notices")
            try #expect(ask().visible == [[0, 2], [1]])
            try stage.session.runScript("alter table notices rename owner to author")
            let answer = try ask()
            #expect(answer.visible == [[], []] && answer.problems.first?.contains("\"author\"") == true)
            try stage.session.runScript(
                "alter table notices rename author to owner; alter table notices add hidden boolean")
            try #expect(ask().visible == [[0, 2], [1]])
            // A column of the same name is not the same column.
            try stage.changed("create policy q on notices as restrictive using (hidden is null)")
            let hidden = [Array(#"{"owner":"ann","hidden":true}"#.utf8)]
            try #expect(stage.ask(table, records: hidden, users: .named("ann")).visible == [[]])
            try stage.session.runScript(
                """
                drop policy q on notices; alter table notices drop hidden, add hidden boolean;
                create policy q on notices as restrictive using (hidden is null)
                """)
            try #expect(stage.ask(table, records: hidden, users: .named("ann")).visible == [[]])
            try stage.session.runScript("drop table notices")
            try #expect(ask().visible == [[], []])
        }

        /// The texts of the two policies are equal to Unicode.
        @Test func aPolicyChangesByItsBytesAlone() throws {
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (octet_length('\u{e9}') = 2)")
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[0, 1, 2]])
            try stage.changed("alter policy p on notes using (octet_length('e\u{301}') = 2)")
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[]])
        }

        @Test func aTypeChangesUnnoticed() throws {
            let (stage, table, _) = try PolicyStage.notes("create policy p on notes using (id >= 2)")
            let records = [Array(#"{"id":1}"#.utf8), Array(#"{"id":2}"#.utf8)]
            func visible() throws -> [Int] { try stage.ask(table, records: records, users: .named("ann")).visible[0] }
            try #expect(visible() == [1])
            try stage.session.runScript(
                """
                drop policy p on notes; alter table notes alter id type text;
                create policy p on notes using (id = '1')
                """
            )
            _ = try visible()
            try stage.changed("")
            try #expect(visible() == [0])
        }

        @Test func aPolicyHangs() throws {
            var limits = PolicyLimits()
            limits.question = .milliseconds(300)
            limits.subject = .milliseconds(100)
            let (stage, table, records) = try PolicyStage.notes(
                """
                create function slow() returns boolean language plpgsql stable as
                    $$ begin if sub() = 'slow' then perform pg_sleep(60); end if; return true; end $$;
                create policy p on notes using (owner = 'ann' and slow())
                """, limits: limits)
            let answer = try stage.ask(table, records: records, users: .named("ann", "slow", "bob", "slow"))
            #expect(answer.visible == [[0, 2], [], [0, 2], []])
            #expect(answer.problems.count == 1 && answer.problems[0].contains("2 user"))
        }

        @Test func allPoliciesHang() throws {
            var limits = PolicyLimits()
            limits.question = .milliseconds(200)
            limits.subject = .milliseconds(50)
            limits.subjects = .milliseconds(300)
            let (stage, table, records) = try PolicyStage.notes(
                "create policy p on notes using (pg_sleep(60) is not null)", limits: limits)
            let users = (0..<100).map { PolicyUser(sub: "\($0)") }
            let elapsed = Elapsed()
            let answer = try stage.ask(table, records: records, users: users)
            #expect(elapsed.isAtMost(.seconds(3)), "\(elapsed.time)")
            #expect(answer.visible == Array(repeating: [], count: 100))
            #expect(answer.problems.count == 1 && answer.problems[0].contains("100 user"))
        }

        /// After a restart of Postgres the first questions find the session of before dead. The feed asks them at once, for
        /// all who came back, and took the loss for its own: it connected anew after some seconds, and refused all joins.
        @Test func theConnectionIsLost() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (owner = sub())")
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[0, 2]])
            let sessions =
                "pg_stat_activity where application_name = 'roost policies' and datname = current_database()"
            _ = try stage.session.queryRows("select pg_terminate_backend(pid) from \(sessions)")
            try eventually("the session is gone") { try stage.database.value("select 1 from \(sessions)") == nil }
            try #expect(stage.ask(table, records: records, users: .named("ann")).visible == [[0, 2]])
        }

        @Test func oneQuestionOfSeveralFails() throws {
            let (stage, table, records) = try PolicyStage.notes("create policy p on notes using (owner = sub())")
            func question(_ role: String, _ table: Table) -> PolicyQuestion {
                let claims = PolicyUser(sub: "ann").claims(role)
                return PolicyQuestion(
                    table: table, command: .select, role: Name(role), rows: records,
                    subjects: [PolicyQuestion.Subject(claims: claims, rows: [0, 1, 2])])
            }
            let gone = Table(oid: 1, schema: "public", name: "gone", columns: [])
            let all = [
                question("nobody", table), question("policy_user", table), question("policy_user", gone),
                question("policy_user", table),
            ]
            try #expect(stage.ask(all).map(\.visible) == [[[]], [[0, 2]], [[]], [[0, 2]]])
            // The function the questions share is gone: each is asked again.
            try stage.session.runScript(
                """
                drop policy p on notes; alter table notes alter owner type varchar;
                create policy p on notes using (owner <> sub())
                """)
            try #expect(stage.ask(all).map(\.visible) == [[[]], [[1]], [[]], [[1]]])
        }
    }
}
