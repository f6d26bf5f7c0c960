import ChangeFeed
import Foundation
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What deleting a backlog costs writers and windows, with 10,000,000 changes in the outbox of which nine tenths
    /// are to go. Run alone, with `ROOST_BENCH=1 swift test -c release --filter PruneBench`; prints, and asserts only
    /// that pruning took place.
    @Suite(.enabled(if: getenv("ROOST_BENCH") != nil)) struct PruneBench {
        private static let transactions = 500
        private static let rowsPerTransaction = 20_000
        private static let writers = 4
        private static let seconds = 12

        @Test func backlog() throws {
            let cluster = PostgresCluster(settings: "max_wal_size = 4GB")
            let database = try cluster.migratedDatabase().prepared("create table t (n int, body text)", watching: "t")
                .tester
            let filler = try database.session()
            try filler.runScript("set synchronous_commit = off; set statement_timeout = 0")
            for number in 0..<Self.transactions {
                let age = number < Self.transactions * 9 / 10 ? "2 days" : "1 hour"
                try filler.runScript(
                    """
                    insert into roost.change (relid, op, at, record)
                    select 't'::regclass, 'I', clock_timestamp() - interval '\(age)',
                        row_to_json(row(g, g % 1000, repeat('x', 100)))
                    from generate_series(1, \(Self.rowsPerTransaction)) g
                    """)
            }
            try filler.runScript("vacuum analyze roost.change", within: .seconds(300))
            try filler.runScript("checkpoint", within: .seconds(300))
            for round in 0..<3 {
                for prunes in round % 2 == 0 ? [false, true] : [true, false] {
                    let line = try measure(database, prunes: prunes)
                    print("round \(round), \(prunes ? "pruning" : "not pruning"): \(line)")
                }
            }
        }

        private func measure(_ database: Database, prunes: Bool) throws -> String {
            var configuration = FeedConfiguration(conninfo: database.conninfo, node: "test")
            configuration.retention = .seconds(prunes ? 86_400 : 864_000)
            configuration.pruneInterval = .milliseconds(200)
            let collector = Collector()
            let feed = ChangeFeed(configuration: configuration, logger: .silent, consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("the feed is ready") { feed.status == .ready }
            let written = Mutex(0)
            var latencies: [Double] = []
            let begin = ContinuousClock.now
            let end = begin + .seconds(Self.seconds)
            try concurrently(Self.writers) { _ in
                let session = try database.session()
                var count = 0
                while ContinuousClock.now < end {
                    try session.runScript("insert into t values (1, 'a message of an ordinary length')")
                    count += 1
                }
                written.withLock { $0 += count }
            }
            let total = written.withLock { $0 }
            try eventually("all rows") { collector.count == total }
            // Paced, so that what is measured is the feed and no queue.
            let session = try database.session()
            for n in 1...1000 {
                try session.runScript("insert into t values (2, 'a message of an ordinary length')")
                let committed = ContinuousClock.now
                try eventually("row \(n)") { collector.count >= total + n }
                if let seen = collector.seen.last {
                    latencies.append((seen.at - committed) / .milliseconds(1))
                }
                usleep(2000)
            }
            let sorted = latencies.sorted()
            let pruned = feed.statistics.pruned
            #expect(prunes == (pruned > 0))
            return String(
                format:
                    "%d inserts/s of %d writers; to the consumer p50 %.2f ms, p99 %.2f ms, worst %.1f ms; %.0f pruned/s",
                total / Self.seconds, Self.writers, sorted[sorted.count / 2], sorted[sorted.count * 99 / 100],
                sorted[sorted.count - 1], Double(pruned) / ((ContinuousClock.now - begin) / .seconds(1)))
        }
    }
}
