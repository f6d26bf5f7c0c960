import ChangeFeed
import Foundation
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// With the safety poll out of the way, a lost ring is a row that never comes.
    @Suite struct DoorbellHuntTests {
        @Test func noRingIsLost() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            var rhythm = Doorbell.Rhythm.sleepy
            rhythm.safety = .seconds(3600)
            try database.withFeed(rhythm: rhythm) { feed, collector in
                let writers = 3
                let each = 1500
                try concurrently(writers) { _ in
                    let session = try database.session()
                    for n in 0..<each {
                        try session.runScript("insert into t values (\(n))")
                        // Around the time the feed takes to fall asleep.
                        usleep(UInt32.random(in: 0..<8000) / 2)
                    }
                }
                try eventually("all \(writers * each) rows, \(collector.count)") { collector.count == writers * each }
                print("doorbell hunt: \(feed.statistics)")
            }
        }

        /// The catalog is looked at with that poll, too, so that the setting means what it says.
        @Test func aSleepingFeedLooksNoMoreOftenThanItIsTold() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.run(
                "insert into roost.change (relid, op, at) values ('t'::regclass, 'I', now() - interval '2 days')")
            var rhythm = Doorbell.Rhythm.sleepy
            rhythm.safety = .seconds(3600)
            try SubscriberStage.with(database, rhythm: rhythm, pruneInterval: .seconds(4)) { stage in
                try eventually("the feed sleeps") { stage.statistics.dozes > 0 }
                let polls = stage.statistics.polls
                try eventually("four seconds later something is pruned") { stage.statistics.pruned > 0 }
                #expect(stage.statistics.polls == polls)
            }
        }

        @Test func sleepingFeedWakesAtOnce() throws {
            let database = try PostgresCluster.shared.migratedDatabase().prepared(
                "create table t (n int)", watching: "t")
            try database.withFeed { feed, collector in
                let session = try database.session()
                var delays: [Duration] = []
                for n in 0..<100 {
                    let dozes = feed.statistics.dozes
                    try eventually("the feed sleeps") { feed.statistics.dozes > dozes || n == 0 }
                    usleep(500)
                    try session.runScript("insert into t values (\(n))")
                    let at = ContinuousClock.now
                    try eventually("row \(n)") { collector.count == n + 1 }
                    delays.append(collector.seen[n].at - at)
                }
                delays.sort()
                print("asleep: commit to consumer p50 \(delays[50]) p99 \(delays[98]); \(feed.statistics)")
                #expect(delays[50] < .milliseconds(10))
                #expect(feed.statistics.missedRings == 0)
            }
        }
    }
}

extension Doorbell.Rhythm {
    /// Asleep soon.
    static var sleepy: Doorbell.Rhythm {
        var rhythm = Doorbell.Rhythm()
        rhythm.linger = .milliseconds(1)
        return rhythm
    }
}
