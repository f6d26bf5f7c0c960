import Administration
import ChangeFeed
import Foundation
import Postgres
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// A pooler in between: one that lends sessions by the transaction is refused before anything is set on them.
    @Suite struct PoolerTests {
        let database: Database

        init() throws {
            database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (n int)", watching: "t")
        }

        func pooled(_ mode: String, _ settings: String = "", _ body: (Database) throws -> Void) throws {
            let bouncer = try PgBouncer(.shared, mode: mode, settings: settings)
            defer { bouncer.stop() }
            try body(bouncer.database(database))
        }

        @Test(arguments: ["transaction", "statement"], ["server_round_robin = 0", "server_round_robin = 1"])
        func lentSessionsAreRefused(_ mode: String, _ settings: String) throws {
            try pooled(mode, settings) { pooled in
                // The application's own sessions, at work meanwhile.
                let isOver = Mutex(false)
                let failures = Mutex<[String]>([])
                let clients = (0..<3).map { number in
                    Thread {
                        while !isOver.withLock({ $0 }) {
                            do { try Self.write(number, pooled) } catch { failures.withLock { $0.append("\(error)") } }
                        }
                    }
                }
                if mode == "transaction" { for client in clients { client.start() } }
                defer { isOver.withLock { $0 = true } }
                for _ in 0..<10 {
                    #expect(Pooler.problem(of: pooled.conninfo, within: .seconds(10)) == Pooler.refusal)
                }
                #expect { try Migrator.migrate(conninfo: pooled.conninfo) } throws: { "\($0)".contains("pool_mode") }
                let findings = Doctor.examineDatabase(conninfo: pooled.conninfo)
                #expect(findings.map(\.subject) == ["pooler"] && findings.allSatisfy { $0.severity == .error })
                let feed = ChangeFeed(
                    configuration: FeedConfiguration(conninfo: pooled.conninfo), logger: .silent, consumer: Collector())
                feed.start()
                defer { feed.stop() }
                try eventually("the reason") { feed.status == .connecting(reason: Pooler.refusal) }
                #expect(failures.withLock { $0 } == [])
            }
            // Nothing that a hub sets for its sessions is left on the pooler's.
            #expect(try database.value("show default_transaction_read_only") == "off")
        }

        /// One transaction of an application's, by a session of psql's that sets nothing.
        private static func write(_ number: Int, _ pooled: Database) throws {
            try PostgresCluster.run(["psql", pooled.conninfo, "-qXc", "insert into t values (\(number))"])
        }

        @Test func aSessionOfItsOwnServes() throws {
            try pooled("session") { pooled in
                #expect(Pooler.problem(of: pooled.conninfo, within: .seconds(10)) == nil)
                let collector = Collector()
                try pooled.withFeed(collector: collector) { feed, _ in
                    for n in 0..<3 {
                        try database.lull(feed, collector, "insert into t values (\(n))")
                    }
                    #expect(collector.lines == (0..<3).map { #"INSERT {"n":\#($0)}"# })
                }
                // The database is bare: it has no roles of clients, and nobody who may read the table.
                let others = ["roles", "readers"]
                let errors = Doctor.examineDatabase(conninfo: pooled.conninfo).filter {
                    $0.severity == .error && !others.contains($0.subject)
                }
                #expect(errors == [])
            }
        }

        @Test func nobodyListens() {
            #expect(Pooler.problem(of: "host=/nowhere", within: .seconds(1)) == nil)
        }

        /// What is missing where the right to connect was taken away.
        @Test func theRightToConnect() throws {
            try database.run(
                """
                do $$ begin create role uninvited login; exception when duplicate_object then null; end $$;
                revoke connect on database \(database.name) from public
                """)
            let finding = try #require(Doctor.examineDatabase(conninfo: database.role("uninvited").conninfo).first)
            #expect(
                finding.message.contains(#"`grant connect on database "\#(database.name)" to "uninvited"`"#),
                "\(finding)")
        }
    }
}
