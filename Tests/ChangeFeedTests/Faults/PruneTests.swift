import Administration
import ChangeFeed
import Foundation
import Testing

@testable import PostgresFixtures

extension FeedTests {
    @Suite struct PruneTests {
        /// Changes of the ages that are given, in days, one transaction each.
        func database(_ ages: [Int]) throws -> Database {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            let session = try database.session()
            for (n, age) in ages.enumerated() {
                try session.runScript("insert into t values (\(n))")
                try session.runScript(
                    "update roost.change set at = at - interval '\(age) days' where record ->> 'n' = '\(n)'")
            }
            return database
        }

        func pruning(_ database: Database, node: String = "test") -> ChangeFeed {
            var configuration = FeedConfiguration(conninfo: database.conninfo, node: node)
            configuration.pruneInterval = .milliseconds(20)
            return ChangeFeed(configuration: configuration, logger: .silent, consumer: Collector())
        }

        @Test func remembersTheLatestTransactionThatIsGone() throws {
            let database = try database([3, 0, 2, 0])
            let highest = try database.value("select xid from roost.change where record ->> 'n' = '2'")
            let feed = pruning(database)
            feed.start()
            defer { feed.stop() }
            try eventually("two are gone") { feed.statistics.pruned == 2 }
            #expect(try database.value("select pruned_xid from roost.meta") == highest)
            #expect(try database.outbox("n") == ["I t 1", "I t 3"])
        }

        /// Longer than one batch, and with what became old only later at the very beginning.
        @Test func everyRoundBeginsAtTheBeginning() throws {
            let database = try database([0])
            try database.run("insert into t select generate_series(1, 2500)")
            try database.run("update roost.change set at = at - interval '2 days' where record ->> 'n' <> '0'")
            let feed = pruning(database)
            feed.start()
            defer { feed.stop() }
            try eventually("2,500 are gone") { feed.statistics.pruned == 2500 }
            try database.run("update roost.change set at = at - interval '2 days'")
            try eventually("the first is gone, too") { feed.statistics.pruned == 2501 }
        }

        @Test func nobodyWaitsForAnotherPruner() throws {
            let database = try database([2, 2, 2])
            let other = try database.session()
            try other.runScript("begin; select from roost.meta for update")
            try database.withFeed { waiting, collector in
                let feed = pruning(database, node: "other")
                feed.start()
                defer { feed.stop() }
                try eventually("the feed is ready") { feed.status == .ready }
                // It prunes every 20 ms, and is not held up by it: polls go on.
                let polls = feed.statistics.polls
                try eventually("ten rounds") {
                    try database.run("notify roost")
                    return feed.statistics.polls > polls + 50
                }
                #expect(feed.statistics.pruned == 0)
                try other.runScript("commit")
                try eventually("all are gone") { feed.statistics.pruned == 3 }
            }
        }

        /// Two hubs delete beside each other and beside writers: each change once, and nobody's statement fails.
        @Test func twoHubsAtOnce() throws {
            let database = try database([])
            try database.run(
                "insert into t select generate_series(1, 30000); update roost.change set at = at - interval '2 days'")
            let feeds = [pruning(database, node: "a"), pruning(database, node: "b")]
            for feed in feeds { feed.start() }
            defer { for feed in feeds { feed.stop() } }
            var written = 0
            let session = try database.session()
            try eventually("30,000 are gone") {
                try session.runScript("insert into t values (0)")
                written += 1
                return feeds.map(\.statistics.pruned).reduce(0, +) == 30_000
            }
            #expect(try database.value("select count(*) from roost.change") == "\(written)")
            #expect(feeds.allSatisfy { $0.statistics.connections == 1 })
        }
    }
}
