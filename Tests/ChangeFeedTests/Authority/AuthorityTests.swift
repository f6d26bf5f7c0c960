import Administration
import ChangeFeed
import Foundation
import Hub
import Synchronization
import TestSupport
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Who may read and write which private channel.
    @Suite struct AuthorityTests {
        private static let members = """
            create table members (room text, who text);
            insert into members values ('a', 'ann'), ('b', 'bob');
            grant select on members to authenticated;
            create policy read on realtime.messages for select to authenticated using (exists (
                select from members m where m.room = realtime.topic() and m.who = current_setting('request.jwt.claim.sub')));
            create policy write on realtime.messages for insert to authenticated with check (
                extension = 'broadcast' and realtime.topic() = 'a' and topic = 'a'
                and (current_setting('request.jwt.claims')::jsonb ->> 'level')::int = 3);
            create policy look on realtime.messages for select to anon using (extension = 'presence');
            """

        @Test func policiesDecide() throws {
            let stage = try AuthorityStage(Self.members)
            let write = AuthorizationQuestion.Right.write
            try #expect(stage.rights("authenticated", "ann", topic: "a") == "all")
            try #expect(stage.rights("authenticated", "ann", topic: "b") == "none")
            try #expect(stage.rights("authenticated", "bob", topic: "a") == "none")
            try #expect(stage.rights("authenticated", topic: "a") == "none", "without a subject")
            try #expect(stage.rights("anon", topic: "a") == "presence")
            try #expect(stage.rights("service_role", topic: "a") == "all", "BYPASSRLS")
            try #expect(stage.rights("authenticated", "ann", topic: "a", to: write(.broadcast)) == "broadcast")
            try #expect(stage.rights("authenticated", "ann", topic: "a", to: write(.presence)) == "none")
            try #expect(stage.rights("authenticated", "ann", topic: "b", to: write(.broadcast)) == "none")
            try #expect(stage.rights("anon", topic: "a", to: write(.broadcast)) == "none")
            try #expect(stage.rights("service_role", topic: "x", to: write(.presence)) == "presence")
            try #expect(stage.rights("nobody_such", topic: "a") == "none")
        }

        /// The answer about one topic is no answer about another that Unicode calls equivalent, in one batch too.
        @Test func topicsAreTheirBytes() throws {
            let stage = try AuthorityStage(
                """
                create policy composed on realtime.messages for select to authenticated
                    using (realtime.topic() = E'Jos\\u00E9');
                """)
            let claims = AuthorityStage.claims("authenticated", "ann")
            let answers = try stage.ask(
                ["Jos\u{E9}", "Jose\u{301}", "Jos\u{E9}"].map {
                    AuthorizationQuestion(claims: claims, topic: $0, right: .read(replay: nil))
                })
            #expect(answers.map(\.words) == ["all", "none", "all"])
        }

        /// Nor is a role another, nor a user.
        @Test func usersAreTheirBytes() throws {
            let stage = try AuthorityStage(
                """
                create policy composed on realtime.messages for select to authenticated
                    using (current_setting('request.jwt.claim.sub') = E'Jos\\u00E9');
                """)
            let answers = try stage.ask(
                ["Jos\u{E9}", "Jose\u{301}"].map {
                    AuthorizationQuestion(
                        claims: AuthorityStage.claims("authenticated", $0), topic: "room", right: .read(replay: nil))
                })
            #expect(answers.map(\.words) == ["all", "none"])
        }

        /// The same as the original finds by inserting rows and looking for them.
        @Test(arguments: [
            "using (true) with check (true)", "using (false)", "using (private)", "using (not private)",
            "using (private is null)", "using (event is null and payload is null)", "using (binary_payload is null)",
            "using (inserted_at > now() at time zone 'UTC' - interval '5 s')", "using (topic = realtime.topic())",
            "using (realtime.topic() like 'r%' and extension in ('broadcast', 'presence'))",
            "using (extension = 'presence') with check (extension = 'broadcast')",
            "using (current_user = 'anon')", "using (current_setting('request.jwt.claims')::jsonb ? 'sub')",
            "using ((current_setting('request.jwt.claim.sub'))::uuid is not null)", "using (messages is not null)",
            "using (1 / (length(topic) - 4) > 0)", "using (id is not null)", "using (realtime.topic() is null)",
        ])
        func asTheOriginal(_ policy: String) throws {
            let stage = try AuthorityStage("create policy p on realtime.messages \(policy)")
            for (role, sub) in [("anon", nil), ("authenticated", "ann"), ("service_role", nil)] as [(String, String?)] {
                for right in [AuthorizationQuestion.Right.read(replay: nil), .write(.broadcast), .write(.presence)] {
                    for topic in ["room", "x'\"\\"] {
                        let claims = AuthorityStage.claims(role, sub)
                        let expected = try stage.original(claims, topic: topic, right)
                        let found = try stage.rights(role, sub, topic: topic, to: right)
                        // The original denies what a policy fails on.
                        #expect(
                            found == expected || found == "failed: error" && expected == "none",
                            "\(role) \(right) \(topic): \(found), not \(expected)")
                    }
                }
            }
        }

        @Test func withoutPoliciesNobodyComesIn() throws {
            let stage = try AuthorityStage()
            try #expect(stage.rights("anon") == "none")
            try #expect(stage.rights("authenticated", "ann", to: .write(.broadcast)) == "none")
            try #expect(stage.rights("service_role") == "all")
        }

        private func eventuallyWithinASecond(_ what: String, _ condition: () throws -> Bool) throws {
            let elapsed = Elapsed()
            try eventually(what) { try condition() }
            #expect(elapsed.isAtMost(.seconds(1)), "\(what) after \(elapsed.time)")
        }

        @Test func privilegesCountBesidesPolicies() throws {
            let stage = try AuthorityStage("create policy p on realtime.messages using (true) with check (true)")
            try #expect(stage.rights("anon") == "all")
            try stage.session.runScript("revoke select on realtime.messages from public")
            try eventuallyWithinASecond("the privilege counts") { try stage.rights("anon") == "none" }
            try #expect(stage.rights("anon", to: .write(.broadcast)) == "broadcast")
            try #expect(stage.rights("service_role") == "none", "beyond policies, not beyond privileges")
            try stage.session.runScript(
                "grant select on realtime.messages to anon; revoke insert on realtime.messages from public")
            try eventuallyWithinASecond("the privilege counts") { try stage.rights("anon") == "all" }
            try #expect(stage.rights("anon", to: .write(.broadcast)) == "none")
            try stage.session.runScript("revoke usage on schema realtime from public")
            try eventuallyWithinASecond("the privilege counts") { try stage.rights("anon") == "none" }
        }

        @Test func aChangedPolicyCountsWithinASecond() throws {
            let stage = try AuthorityStage("create policy p on realtime.messages using (true) with check (true)")
            try #expect(stage.rights("anon") == "all")
            for (change, expected) in [
                ("alter policy p on realtime.messages using (extension = 'presence')", "presence"),
                ("drop policy p on realtime.messages", "none"),
                ("create policy p on realtime.messages to authenticated using (true)", "none"),
                ("grant authenticated to anon with inherit true", "all"), ("revoke authenticated from anon", "none"),
                ("alter table realtime.messages disable row level security", "all"),
            ] {
                let sql = change.replacing(" with inherit true", with: "")
                if change.contains("inherit") { try stage.session.runScript("alter role anon inherit") }
                try stage.session.runScript(sql)
                try eventuallyWithinASecond(change) { try stage.rights("anon") == expected }
            }
            try stage.session.runScript("alter role anon noinherit")
        }

        @Test func manyAtOnceEachByItsOwn() throws {
            let stage = try AuthorityStage(
                Self.members + "insert into members select 't' || n, 'u' || n from generate_series(0, 999) n")
            let questions = (0..<2000).map { n in
                AuthorizationQuestion(
                    claims: AuthorityStage.claims("authenticated", "u\(n % 1000)"), topic: "t\(n / 2)",
                    right: .read(replay: nil))
            }
            let answers = try stage.ask(questions).map(\.words)
            #expect(answers == (0..<2000).map { $0 % 1000 == $0 / 2 ? "all" : "none" })
        }

        @Test func aPolicyThatFailsDeniesThoseItFailsFor() throws {
            let stage = try AuthorityStage(
                "create policy p on realtime.messages using ((current_setting('request.jwt.claim.sub'))::int > 0)")
            let questions = ["1", "x", "2"].map {
                AuthorizationQuestion(claims: AuthorityStage.claims("anon", $0), topic: "a", right: .read(replay: nil))
            }
            try #expect(stage.ask(questions).map(\.words) == ["all", "failed: error", "all"])
        }

        @Test func aPolicyThatHangsHoldsUpNobodyForLong() throws {
            let stage = try AuthorityStage(
                """
                create policy p on realtime.messages using (
                    case when realtime.topic() = 'slow' then pg_sleep(60) is not null else true end)
                """)
            let questions = ["slow", "fast"].map {
                AuthorizationQuestion(claims: AuthorityStage.claims("anon", $0), topic: $0, right: .read(replay: nil))
            }
            try #expect(stage.ask(questions, within: .seconds(15)).map(\.words) == ["failed: canceled", "all"])
        }

        /// libpq ends a text at a NUL: what comes before it is another topic.
        @Test func namesWithANulAreNobodys() throws {
            let stage = try AuthorityStage(
                "create policy p on realtime.messages using (true) with check (true); select realtime.send('{}', 'e', 'room')"
            )
            let nul = "room\u{0}x"
            try #expect(stage.rights("anon", topic: "room") == "all")
            try #expect(stage.rights("anon", topic: nul) == "none")
            try #expect(stage.rights("anon", topic: nul, to: .write(.broadcast)) == "none")
            try #expect(stage.rights("service_role\u{0}", topic: "room") == "none")
            try #expect(stage.replay("service_role", topic: nul, since: 0).isEmpty)
        }

        @Test func longTopicsHoldNobodyUp() throws {
            let stage = try AuthorityStage("create policy p on realtime.messages using (length(realtime.topic()) > 3)")
            let long = String(repeating: "ü", count: 1_000_000)
            let questions = [long, "room", long, "x", long].map {
                AuthorizationQuestion(claims: AuthorityStage.claims("anon"), topic: $0, right: .read(replay: nil))
            }
            let answers = try stage.ask(questions, within: .seconds(30))
            #expect(answers.map(\.words) == ["all", "all", "all", "none", "all"])
        }

        /// Codes of supabase/realtime 2.174: a client that is told that a policy failed comes again, one that is denied may not.
        @Test func aPolicyThatFailsIsNoDenial() throws {
            let stage = try AuthorityStage(
                """
                create policy r on realtime.messages for select using (realtime.topic()::int > 0);
                create policy w on realtime.messages for insert with check (realtime.topic()::int > 0);
                """)
            try #expect(stage.rights("anon", topic: "7") == "all")
            try #expect(stage.rights("anon", topic: "-7") == "none")
            try #expect(stage.rights("anon", topic: "room") == "failed: error")
            try #expect(stage.rights("anon", topic: "room", to: .write(.broadcast)) == "failed: error")
            try #expect(stage.rights("anon", topic: "7", to: .write(.broadcast)) == "broadcast")
        }

        // MARK: The database goes away

        @Test func withoutTheTable() throws {
            let stage = try AuthorityStage("drop schema realtime cascade")
            try #expect(stage.rights("service_role") == "unavailable")
            try Migrator.migrate(conninfo: stage.database.conninfo)
            try stage.session.runScript(
                "create schema if not exists realtime; create table if not exists realtime.messages (id int)")
            try eventuallyWithinASecond("the table counts") {
                try stage.rights("service_role") != "unavailable"
            }
        }

        @Test func anAuthorityWithoutADatabaseSaysSo() throws {
            let authority = PolicyAuthority(conninfo: "host=/nowhere dbname=x connect_timeout=1", logger: .silent)
            authority.start()
            let elapsed = Elapsed()
            let said = Notes()
            let question = AuthorizationQuestion(
                claims: AuthorityStage.claims("anon"), topic: "a", right: .read(replay: nil))
            authority.decideQuestion(question) { said.add($0.words) }
            try eventually("an answer") { said.all == ["unavailable"] }
            authority.stop()
            #expect(elapsed.isAtMost(.seconds(3)), "\(elapsed.time)")
            authority.decideQuestion(question) { said.add($0.words) }
            #expect(said.all == ["unavailable", "unavailable"], "also once it is stopped")
        }

        @Test(arguments: ["fast", "immediate"]) func afterAnOutage(_ mode: String) throws {
            let cluster = PostgresCluster.restarted
            let stage = try AuthorityStage("create policy p on realtime.messages using (true)", on: cluster)
            try #expect(stage.rights("anon") == "all")
            try cluster.stop(mode)
            let elapsed = Elapsed()
            try #expect(stage.rights("anon") == "unavailable")
            #expect(elapsed.isAtMost(.seconds(1)), "\(elapsed.time)")
            try cluster.start()
            try eventually("the authority is back") { try stage.rights("anon") == "all" }
        }

        /// A restart that nobody noticed costs nobody a join.
        @Test func aRestartInBetween() throws {
            let cluster = PostgresCluster.restarted
            let stage = try AuthorityStage("create policy p on realtime.messages using (true)", on: cluster)
            try #expect(stage.rights("anon") == "all")
            try cluster.stop("fast")
            try cluster.start()
            try #expect(stage.rights("anon") == "all")
        }

        @Test func sessionsThatAreThrownOut() throws {
            let stage = try AuthorityStage("create policy p on realtime.messages using (true)")
            for _ in 0..<3 {
                try #expect(stage.rights("anon") == "all")
                try stage.session.runScript(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                )
            }
            try #expect(stage.rights("anon") == "all")
        }

        @Test func stoppingAnswersWhatWaits() throws {
            let stage = try AuthorityStage("create policy p on realtime.messages using (pg_sleep(0.05) is not null)")
            let said = Notes()
            for n in 0..<1200 {
                let claims = AuthorityStage.claims("anon", "\(n)")
                stage.authority.decideQuestion(
                    AuthorizationQuestion(claims: claims, topic: "a", right: .read(replay: nil))
                ) {
                    said.add($0.words)
                }
            }
            let elapsed = Elapsed()
            stage.authority.stop(within: .seconds(20))
            #expect(said.all.count == 1200)
            #expect(said.all.last == "unavailable")
            #expect(elapsed.isAtMost(.seconds(15)), "\(elapsed.time)")
        }

        // MARK: Figures

        @Test(.enabled(if: getenv("ROOST_BENCH") != nil), arguments: [1, 50, 500, 5000]) func speed(_ count: Int) throws
        {
            let stage = try AuthorityStage(
                Self.members
                    + "insert into members select 't' || n, 'u' || n from generate_series(0, 4999) n; create index on members (room, who); analyze members"
            )
            let questions = (0..<count).map { n in
                AuthorizationQuestion(
                    claims: AuthorityStage.claims("authenticated", "u\(n)"), topic: "t\(n)", right: .read(replay: nil))
            }
            var times: [Double] = []
            for _ in 0..<15 {
                let began = ContinuousClock.now
                _ = try stage.ask(questions)
                times.append((ContinuousClock.now - began) / .milliseconds(1))
            }
            let median = times.sorted()[7]
            print("\(count) joins at once: \(median) ms, \(Int(Double(count) / median * 1000)) joins/s")
        }
    }
}
