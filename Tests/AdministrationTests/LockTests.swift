import Administration
import ChangeFeed
import Foundation
import Postgres
import Testing

@testable import PostgresFixtures

extension CommandTests {
    /// What commands do beside those who use the tables.
    @Suite struct LockTests {
        let database: Database

        init() throws { database = try PostgresCluster.shared.migratedDatabase().prepared("create table t (n int)") }

        /// A transaction that keeps triggers from being put on the table.
        func writer() throws -> DatabaseSession {
            let session = try Database(conninfo: database.conninfo + " application_name=import").session()
            try session.runScript("begin; insert into t values (0)")
            return session
        }

        @Test func writersGetOnWhileATableIsWaitedFor() throws {
            let database = database
            let holder = try writer()
            let id = holder.backendID
            let longest = Notes()
            let told = Notes()
            try concurrently(2) { index in
                if index == 0 {
                    #expect {
                        try Watcher.watch(
                            "t", conninfo: database.conninfo, patience: LockPatience(total: .seconds(2)),
                            progress: { told.add($0.detail ?? "") })
                    } throws: { "\($0)".hasPrefix("t is in use by process \(id) (import, idle in transaction") }
                    longest.add("over")
                    return
                }
                let session = try database.session()
                var slowest = Duration.zero
                var count = 0
                while longest.all.isEmpty {
                    let began = ContinuousClock.now
                    try session.runScript("insert into t values (1)")
                    slowest = max(slowest, .now - began)
                    count += 1
                    usleep(2000)
                }
                // A turn is 200 ms, and who comes at its beginning waits for all of it; nobody waits for the holder.
                #expect(slowest < .milliseconds(600), "\(slowest)")
                #expect(count > 100, "\(count)")
            }
            #expect(told.all.contains { $0.hasPrefix("waits for a lock held by process \(id) (import") }, "\(told.all)")
            try holder.runScript("commit")
            #expect(try Watcher.watch("t", conninfo: database.conninfo).changed == ["t"])
        }

        @Test func readersAreInTheWayOfUnwatching() throws {
            try Watcher.watch("t", conninfo: database.conninfo)
            let reader = try Database(conninfo: database.conninfo + " application_name=report").session()
            try reader.runScript("begin; select * from t")
            let id = reader.backendID
            #expect {
                try Watcher.unwatch(
                    "t", conninfo: database.conninfo, patience: LockPatience(total: .milliseconds(500)))
            } throws: { "\($0)".contains("process \(id) (report") }
            try reader.runScript("commit")
            #expect(try Watcher.unwatch("t", conninfo: database.conninfo).changed == ["t"])
        }

        /// Migrates while a session of that name holds a lock, until the migration says that it waits for it.
        private static func migrate(
            _ database: Database, whileHeldBy name: String, _ take: String, until giveBack: String, isTold: String
        ) throws {
            let (held, told) = (Notes(), Notes())
            try concurrently(2) { index in
                if index == 0 {
                    try eventually("the lock is held") { !held.all.isEmpty }
                    try Migrator.migrate(conninfo: database.conninfo) { told.add($0.detail ?? "") }
                } else {
                    let holder = try Database(conninfo: database.conninfo + " application_name=\(name)").session()
                    try holder.runScript(take)
                    held.add("held")
                    try eventually("it says what it waits for") { told.all.contains { $0.contains(isTold) } }
                    try holder.runScript(giveBack)
                }
            }
        }

        @Test func aMigrationWaitsInShortTurns() throws {
            let database = database
            try Self.migrate(
                database, whileHeldBy: "dump", "begin; lock table roost.meta in access exclusive mode", until: "commit",
                isTold: "(dump")
            let holder = try Database(conninfo: database.conninfo + " application_name=dump").session()
            try holder.runScript("begin; lock table roost.meta in access exclusive mode")
            let id = holder.backendID
            #expect {
                try Migrator.migrate(conninfo: database.conninfo, patience: LockPatience(total: .zero))
            } throws: { "\($0)".contains("in use by process \(id) (dump") }
        }

        /// Another one that runs at the same time keeps nobody waiting, so it is waited for in one go.
        @Test func whatALongStatementWaitsForIsTold() throws {
            let database = database
            try Self.migrate(
                database, whileHeldBy: "other", "select pg_advisory_lock(1919905651, 0)",
                until: "select pg_advisory_unlock(1919905651, 0)", isTold: "(other, idle")
        }

        /// Anybody who may connect can hold that lock: who it is, is told while the migration waits, and when it has waited in vain.
        @Test func aMigrationThatWaitsInVainNamesWhoeverHoldsTheLock() throws {
            try database.run(
                """
                do $$ begin create role bystander login; exception when duplicate_object then null; end $$;
                """)
            let stranger = try Database(conninfo: database.role("bystander").conninfo + " application_name=dashboard")
                .session()
            try stranger.runScript("select pg_advisory_lock(1919905651, 0)")
            let (id, told) = (stranger.backendID, Notes())
            #expect {
                try Migrator.migrate(conninfo: database.conninfo, patience: LockPatience(total: .seconds(3))) {
                    told.add($0.detail ?? "")
                }
            } throws: {
                "\($0)".hasPrefix("The lock by which migrations take turns is held by process \(id) (dashboard, idle")
                    && "\($0)".contains("pg_terminate_backend(\(id))")
            }
            #expect(
                told.all.contains { $0.hasPrefix("waits for a lock held by process \(id) (dashboard") }, "\(told.all)")
        }
    }
}
