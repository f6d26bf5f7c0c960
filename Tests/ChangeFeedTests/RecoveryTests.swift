import ChangeFeed
import Foundation
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What breaks, and that nothing is lost or repeated by it.
    @Suite struct RecoveryTests {
        @Test func killedBackends() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.withFeed { feed, collector in
                let total = 6000
                try concurrently(2) { index in
                    let session = try database.session()
                    if index == 0 {
                        for n in 0..<total { try session.runScript("insert into t values (\(n))") }
                    } else {
                        for round in 1...3 {
                            try eventually("rows of round \(round)") { collector.count > round * 500 }
                            try session.runScript(
                                "select pg_terminate_backend(pid) from pg_stat_activity "
                                    + "where application_name = 'roost' and query ~ 'listen|roost|pg_advisory' "
                                    + "and datname = current_database() and pid <> pg_backend_pid() "
                                    + "and query !~ 'insert into t '"
                            )
                            try eventually("connection \(round + 1)") { collector.readies > round }
                        }
                    }
                }
                try eventually("all rows, \(collector.count)") { collector.count >= total }
                #expect(collector.lines == (0..<total).map { #"INSERT {"n":\#($0)}"# })
                // Published when the feed has nothing left to read.
                try eventually("four connections") { feed.statistics.connections >= 4 }
            }
        }

        @Test(arguments: ["fast", "immediate", "kill -9"])
        func restartedServer(mode: String) throws {
            let cluster = PostgresCluster.restarted
            let database = try cluster.migratedDatabase().prepared("create table t (n int)", watching: "t")
            // A slow consumer, so that the server goes away in the middle of a window.
            let slow = Collector { _ in usleep(1000) }
            try database.withFeed(collector: slow) { feed, collector in
                try database.run("insert into t select generate_series(0, 49999)")
                try eventually("some rows") { collector.count > 5000 }
                let connections = feed.statistics.connections
                if mode == "kill -9" {
                    // One backend killed makes Postgres throw out all and recover.
                    let victim = try database.session()
                    withExtendedLifetime(victim) { _ = kill(victim.backendID, SIGKILL) }
                } else {
                    try cluster.stop(mode)
                }
                let before = collector.count
                // It may be back before anybody looks: a killed backend costs Postgres a moment, and the first retry may
                // come at once.
                try eventually("the feed noticed") {
                    feed.status != .ready || feed.statistics.connections > connections
                }
                let posted = Mutex(false)
                feed.postWork { context in posted.withLock { $0 = !context.canQuery } }
                try eventually("posted work runs while the server is away") { posted.withLock { $0 } }
                if mode != "kill -9" { try cluster.start() }
                try eventually("Postgres recovered") { (try? database.session()) != nil }
                try database.run("insert into t select generate_series(50000, 50099)")
                try eventually("all rows") { collector.count >= 50_100 }
                #expect(before < 50_000)
                #expect(collector.lines == (0..<50_100).map { #"INSERT {"n":\#($0)}"# })
            }
        }

        @Test func stoppedAndStartedAgain() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            let collector = Collector()
            let total = 3000
            // A hub that was never here starts at now, not at the first row.
            try database.withFeed { _, _ in }
            try concurrently(2) { index in
                if index == 0 {
                    let session = try database.session()
                    for n in 0..<total { try session.runScript("insert into t values (\(n))") }
                } else {
                    for round in 1...4 {
                        try database.withFeed(collector: collector) { feed, collector in
                            try eventually("round \(round)") { collector.count > round * 500 }
                        }
                    }
                }
            }
            try database.withFeed(collector: collector) { _, collector in
                try eventually("all rows") { collector.count >= total }
            }
            #expect(collector.lines == (0..<total).map { #"INSERT {"n":\#($0)}"# })
        }

        @Test func foreignCursorIsNotTrusted() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.withFeed { _, _ in }
            try database.run("update roost.cursor set snapshot = '900000000:900000000:'")
            try database.withFeed { _, collector in
                try database.run("insert into t values (1)")
                try eventually("the row") { collector.count == 1 }
            }
        }

        @Test func oldChangesArePruned() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            let collector = Collector()
            try database.run("insert into t select generate_series(1, 12000)")
            try database.run("update roost.change set at = at - interval '2 days'; insert into t values (0)")
            var configuration = FeedConfiguration(conninfo: database.conninfo, node: "test")
            configuration.pruneInterval = .milliseconds(50)
            let feed = ChangeFeed(configuration: configuration, logger: .silent, consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("12,000 are gone") { feed.statistics.pruned == 12_000 }
            #expect(try database.session().queryRows("select count(*) from roost.change") == [["1"]])
        }
    }
}
