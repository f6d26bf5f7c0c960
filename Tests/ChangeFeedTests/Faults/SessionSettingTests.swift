import Administration
import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What is set for a role or a database to keep its applications in bounds does not hurt a hub.
    @Suite struct SessionSettingTests {
        static let settings = [
            "idle_session_timeout = '300ms'", "statement_timeout = '300ms'", "lock_timeout = '100ms'",
            "idle_in_transaction_session_timeout = '100ms'", "default_transaction_read_only = on",
            "default_transaction_isolation = 'serializable'",
        ]

        @Test func doNotHurt() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            let name = try #require(try database.value("select current_database()"))
            for setting in Self.settings {
                let parameter = setting.split(separator: " ").first.map(String.init)
                // idle_session_timeout is of 14.
                guard try database.value("select 1 from pg_settings where name = $1", [parameter]) != nil else {
                    continue
                }
                try database.run("alter database \(name) set \(setting)")
            }
            let writer = try database.tester.session()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public","table":"messages"}"#, as: "ann")
                try writer.runScript("insert into messages values (-1, 1, 'x')")
                try eventually("the first message") { stage.shown("ann", group).count == 1 }
                let sessions = try Set(database.tester.hubSessions())
                #expect(sessions.count == 3)
                for n in 0..<4 {
                    // Longer than the timeouts: idle sessions, and a doorbell's lock that is waited for.
                    try writer.runScript("begin; insert into messages values (\(n), 1, 'x')")
                    usleep(600_000)
                    try writer.runScript("commit")
                    try eventually("message \(n)") { stage.shown("ann", group).count == n + 2 }
                }
                usleep(600_000)
                try writer.runScript("insert into messages values (4, 1, 'x')")
                try eventually("the last message") { stage.shown("ann", group).count == 6 }
                #expect(try Set(database.tester.hubSessions()) == sessions, "no session was lost")
            }
            // The command line's, too.
            try Migrator.migrate(conninfo: database.conninfo)
            try Watcher.watch("participants", conninfo: database.conninfo)
        }
    }
}
