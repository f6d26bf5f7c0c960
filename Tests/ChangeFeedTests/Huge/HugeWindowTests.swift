import ChangeFeed
import Foundation
import Testing

@testable import PostgresFixtures

extension FeedTests {
    @Suite struct HugeWindowTests {
        /// Else it would be begun, and given up, on every new connection, and the hub would never hand on anything again.
        @Test func oneThatTakesLongerThanAWindowMayComesAllTheSame() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            let rows = 60_000
            // To read and sort so many takes Postgres 20 ms.
            var configuration = FeedConfiguration(conninfo: database.conninfo, statementLimit: .milliseconds(2))
            configuration.firstRetry = .milliseconds(50)
            let collector = Collector()
            let feed = ChangeFeed(configuration: configuration, logger: .silent, consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("the feed is ready") { feed.status == .ready }
            try database.run("insert into t select generate_series(1, \(rows))")
            try eventually("all rows, have \(collector.count)", within: .seconds(60)) { collector.count >= rows }
            #expect(collector.count == rows, "each once")
            try eventually("it did take longer") { feed.statistics.connections > 1 }
        }
    }
}
