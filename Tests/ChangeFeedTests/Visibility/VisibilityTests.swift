import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Who is shown which rows of a table with row level security.
    @Suite struct VisibilityTests {
        private static let all = #"{"event":"*","schema":"public","table":"messages"}"#
        private static let marker = #"{"event":"*","schema":"public","table":"marker"}"#

        /// What each of these users was shown of messages, when all of `script` went through.
        private func shown(
            _ script: String, to subjects: String..., on database: Database, filter: String = all
        ) throws -> [[String]] {
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let group = try stage.join(filter, as: "ann")
                for subject in subjects where subject != "ann" { try stage.admit(subject, to: group) }
                try database.run(script)
                try stage.settle(database)
                return subjects.map { stage.shown($0, group).map(Self.gist) }
            }
        }

        /// `INSERT 1 a`, `UPDATE 1 b was 1 a`, `DELETE was 1`.
        private static func gist(_ data: String) -> String {
            struct Row: Decodable {
                var id: Int?
                var body: String?
                var text: String { [id.map(String.init), body].compactMap { $0 }.joined(separator: " ") }
            }
            struct Change: Decodable {
                var type: String
                var record: Row?
                var old_record: Row?
            }
            do {
                let change = try JSONDecoder().decode(Change.self, from: Data(data.utf8))
                let old = change.old_record.map { "was " + $0.text }
                return ([change.type, change.record?.text, old] as [String?]).compactMap { $0 }.joined(separator: " ")
            } catch {
                return "unreadable: \(data)"
            }
        }

        @Test func membersSeeWhatSelectShows() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            let shown = try shown(
                """
                insert into messages values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');
                update messages set body = 'A' where id = 1;
                """, to: "ann", "bob", "eve", on: database)
            #expect(shown[0] == ["INSERT 1 a", "INSERT 2 b", "UPDATE 1 A was 1"])
            #expect(shown[1] == ["INSERT 1 a", "UPDATE 1 A was 1"])
            #expect(shown[2] == [])
        }

        /// Each version is judged by itself: what a row was while it was hidden does not show when it no longer is, and
        /// a row that is gone again was there.
        @Test func everyVersionIsJudgedByItself() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run("alter table messages replica identity full")
            let shown = try shown(
                """
                insert into messages values (1, 3, 'secret');
                update messages set conversation = 1, body = 'open' where id = 1;
                update messages set body = 'still open' where id = 1;
                update messages set conversation = 3, body = 'closed' where id = 1;
                insert into messages values (2, 1, 'short');
                delete from messages where id = 2;
                """, to: "bob", "eve", on: database)
            #expect(
                shown[0] == [
                    "UPDATE 1 open was 1", "UPDATE 1 still open was 1 open", "INSERT 2 short", "DELETE was 2 short",
                ])
            #expect(shown[1] == [])
        }

        @Test func aFilterIsNoWayAround() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            let filter = #"{"event":"*","schema":"public","table":"messages","filter":"conversation=eq.2"}"#
            let shown = try shown(
                "insert into messages values (1, 1, 'a'), (2, 2, 'b')", to: "ann", "bob", on: database, filter: filter)
            #expect(shown == [["INSERT 2 b"], []])
        }

        @Test func columnsWithoutPrivilege() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                "revoke select on messages from authenticated; grant select (id, conversation) on messages to authenticated"
            )
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let group = try stage.join(Self.all, as: "ann")
                try database.run("insert into messages values (1, 1, 'hush', false, 'hush')")
                try stage.settle(database)
                let data = try #require(stage.shown("ann", group).first)
                #expect(data.contains(#""record":{"id":1,"conversation":1}"#))
                #expect(!data.contains("hush") && !data.contains("body"))

                let oracle = try stage.join(
                    #"{"event":"*","schema":"public","table":"messages","filter":"secret=eq.hush"}"#, as: "ann")
                #expect(stage.refusal(oracle)?.contains("permission denied for column secret") == true)
            }
        }

        @Test func withoutPrivilegeTheRefusalNamesTheGrant() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let anon = try stage.join(Self.all, role: "anon", as: "nobody")
                #expect(stage.refusal(anon)?.contains(#"grant select on public.messages to "anon";"#) == true)
                let unknown = try stage.join(Self.all, role: "no_such_role", as: "nobody")
                #expect(stage.refusal(unknown)?.contains("the database has no such role") == true)
                // Granted, it goes live by itself.
                try database.run("grant select on messages to anon")
                try database.run("insert into messages values (1, 1, 'a')")
                try eventually("anon is subscribed") { stage.refusal(anon) == nil }
                try database.run("revoke select on messages from anon; insert into messages values (2, 1, 'b')")
                try eventually("anon is not subscribed") { stage.refusal(anon) != nil }
            }
        }

        /// A policy, RLS itself, a privilege: what is changed counts within a second.
        @Test(arguments: [
            ("drop policy of_mine on messages", false), ("alter policy of_mine on messages using (false)", false),
            ("create policy other on messages as restrictive for select using (conversation <> 1)", false),
            ("revoke authenticated from authenticated_user", true),
            ("alter table messages disable row level security", true),
        ]) func policiesChangeWhileClientsAreConnected(change: (sql: String, annSees: Bool)) throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run(
                """
                do $$ begin create role authenticated_user; exception when duplicate_object then null; end $$;
                grant authenticated to authenticated_user;
                """)
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let group = try stage.join(Self.all, as: "ann", "eve")
                try database.run("insert into messages values (1, 1, 'before')")
                try stage.settle(database)
                #expect(stage.shown("ann", group).map(Self.gist) == ["INSERT 1 before"])
                try database.run(change.sql)
                usleep(1_000_000)
                try database.run("insert into messages values (2, 1, 'after')")
                try stage.settle(database)
                let isOpen = change.sql.contains("disable")
                #expect(
                    stage.shown("ann", group).map(Self.gist)
                        == ["INSERT 1 before"] + (change.annSees ? ["INSERT 2 after"] : []))
                #expect(stage.shown("eve", group).map(Self.gist) == (isOpen ? ["INSERT 2 after"] : []))
            }
        }

        /// Row level security that comes to a table with subscribers.
        @Test func rowSecurityThatIsTurnedOnLater() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run("alter table messages disable row level security")
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                let group = try stage.join(Self.all, as: "ann", "eve")
                try database.run("insert into messages values (1, 1, 'open')")
                try stage.settle(database)
                try database.run("alter table messages enable row level security")
                usleep(1_000_000)
                try database.run("insert into messages values (2, 1, 'closed')")
                try stage.settle(database)
                #expect(stage.shown("ann", group).map(Self.gist) == ["INSERT 1 open", "INSERT 2 closed"])
                #expect(stage.shown("eve", group).map(Self.gist) == ["INSERT 1 open"])
            }
        }

        /// A policy that fails for one hides rows from that one alone.
        @Test func aFailingPolicyFailsClosed() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run("alter policy of_mine on messages using (me()::int = conversation)")
            let shown = try shown(
                "insert into messages values (1, 1, 'a')", to: "ann", "1", "2", on: database)
            #expect(shown == [[], ["INSERT 1 a"], []])
        }

        /// The session that asks policies dies in the middle: nothing is lost, and nothing shown that should not be.
        @Test func theAskingSessionIsKilled() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.all, as: "ann", "eve")
                let total = 3000
                try concurrently(2) { index in
                    let session = try database.session()
                    if index == 0 {
                        for n in 0..<total { try session.runScript("insert into messages values (\(n), 1, 'x')") }
                    } else {
                        for round in 1...4 {
                            try eventually("round \(round)") { stage.seen.count > round * 300 }
                            try session.runScript(
                                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
                                    + "and query like '%pg_temp.%' and pid <> pg_backend_pid()")
                        }
                    }
                }
                try eventually("all rows, \(stage.seen.count)") { stage.shown("ann", group).count >= total }
                #expect(stage.shown("ann", group).map(Self.gist) == (0..<total).map { "INSERT \($0) x" })
                #expect(stage.shown("eve", group).isEmpty)
            }
        }

        @Test func messagesFromSQLComeInOrderWithChanges() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "marker")
                try database.run(
                    """
                    select realtime.send('{"n": 1}', 'first', 'room');
                    select realtime.send('{"n": 2}', 'second', 'room', false);
                    """)
                try stage.settle(database)
                let messages = stage.broadcasts
                #expect(messages.map(\.key.topic) == ["realtime:room", "realtime:room"])
                #expect(messages.map(\.key.isPrivate) == [true, false])
                guard case .text(let payload) = messages.first?.broadcast else {
                    Issue.record("no text: \(messages)")
                    return
                }
                let text = String(decoding: payload, as: UTF8.self)
                #expect(text.hasPrefix(#"{"event":"first","payload":{"#))
                #expect(text.hasSuffix(#""type":"broadcast","meta":{"id":"\#(messages[0].id)"}}"#))
            }
        }
    }
}
