import ChangeFeed
import Foundation
import Hub
import Matching
import Postgres
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Rows of tables that nobody hears are passed over in Postgres, and nobody is the poorer for it.
    @Suite struct UnheardTests {
        private static let messages = #"{"event":"INSERT","schema":"public","table":"messages"}"#
        private static let marker = #"{"event":"*","schema":"public","table":"marker"}"#
        private static let many = """
            insert into messages select n, 1, 'x' from generate_series(1, 5000) n
            """

        @Test func rowsThatNobodyHearsAreNotRead() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                try stage.settle(database)
                let before = stage.statistics
                try database.run(Self.many)
                try stage.settle(database)
                try eventually("more are not counted") { stage.statistics.passed - before.passed == 2001 }
                #expect(stage.statistics.changes - before.changes < 10, "markers alone")

                let group = try stage.join(Self.messages, as: "ann")
                try database.run("insert into messages values (6000, 1, 'y')")
                try stage.settle(database)
                #expect(stage.shown("ann", group).count == 1)
                #expect(stage.statistics.passed - before.passed == 2001)
            }
        }

        /// Whoever is told to be subscribed while the statement that passes the table over waits for its snapshot.
        @Test func liveMeansLive() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                try stage.settle(database)
                for round in 0..<5 {
                    let holder = try database.session()
                    // Something else of the feed may come to the table first, such as its upkeep: then this is tried again.
                    while try !windowWaits(for: holder, database) {
                        try holder.runScript("rollback")
                        try stage.settle(database)
                    }
                    let group = try stage.join(Self.messages, as: "ann")
                    guard case .live = stage.outcome(group) else { throw TooLate(description: "not subscribed") }
                    try holder.runScript("insert into messages values (\(round), 1, 'x'); commit")
                    try stage.settle(database)
                    #expect(stage.shown("ann", group).count == 1, "round \(round)")
                    try stage.leave(group)
                }
            }
        }

        /// Locks the outbox, wakes the feed, and waits until a statement of it waits for that.
        ///
        /// - Returns: whether that is a window, the snapshot of which is taken when it has its locks.
        private func windowWaits(for holder: DatabaseSession, _ database: Database) throws -> Bool {
            try holder.runScript("begin; lock table roost.change in access exclusive mode")
            try database.run("notify roost")
            var waiting: String?
            try eventually("a statement that waits") {
                waiting = try database.value(
                    """
                    select left(query, 200) from pg_stat_activity
                    where wait_event_type = 'Lock' and datname = current_database() limit 1
                    """)
                return waiting != nil
            }
            return waiting?.hasPrefix("select 0 as id, (select count(*)") == true
        }

        /// Between windows and within them, while much is written.
        @Test func whoComesAndGoesMissesNothing() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                let isOver = Mutex(false)
                try concurrently(3) { writer in
                    let session = try database.session()
                    guard writer == 0 else {
                        var n = writer * 1_000_000
                        while !isOver.withLock({ $0 }) {
                            try session.runScript(
                                "insert into messages select n, 2, 'x' from generate_series(\(n), \(n + 19)) n")
                            n += 20
                            usleep(3000)
                        }
                        return
                    }
                    defer { isOver.withLock { $0 = true } }
                    for round in 0..<60 {
                        let group = try stage.join(
                            #"{"event":"INSERT","schema":"public","table":"messages","filter":"conversation=eq.1"}"#,
                            as: "ann")
                        try session.runScript("insert into messages values (\(round), 1, 'mine')")
                        try eventually("the row of round \(round)") { stage.shown("ann", group).count == 1 }
                        try stage.leave(group)
                    }
                }
            }
        }

        /// Else a hub that is started anew would go through all of it once more, or lack it after the retention.
        @Test func thePlaceMovesOnPastThem() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                try stage.settle(database)
                let session = try database.session()
                try session.runScript("begin; insert into messages values (1, 1, 'x')")
                let writer = try #require(try session.queryRows("select pg_current_xact_id()").first?.first ?? nil)
                try session.runScript("commit")
                try eventually("the place is stored behind the row") {
                    try database.value("select pg_visible_in_snapshot('\(writer)', snapshot) from roost.cursor") == "t"
                }
            }
        }

        /// A member that was away reads for itself what it missed, whoever heard the table meanwhile.
        @Test func whoWasAwayIsBroughtThem() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database, recoveryWindow: .seconds(60)) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                let group = try stage.join(Self.messages, as: "ann")
                try database.run("insert into messages values (0, 1, 'x')")
                try stage.settle(database)
                let cursor = try #require(stage.seen.last { $0.group == group }).cursor
                try stage.leave(group)
                let before = stage.statistics.passed
                try database.run(Self.many)
                try stage.settle(database)
                try eventually("they were passed over") { stage.statistics.passed > before }
                let again = try stage.join(Self.messages, as: "ann")
                let recovered = try stage.recovery(of: again, from: .cursor(cursor))
                #expect(recovered.start == .resumed)
                #expect(recovered.changes.count == 5000)
            }
        }

        @Test func theObserverHearsItsTables() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat().also(
                "create table quiet (id int primary key)", watching: "quiet")
            let observer = MessageObserver()
            try SubscriberStage.with(database, observer: observer) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                try database.run("insert into quiet values (1); insert into messages values (1, 1, 'x')")
                try stage.settle(database)
                #expect(observer.tables.contains("messages"))
                #expect(!observer.tables.contains("quiet"))
                try eventually("the row that nobody needs is counted") { stage.statistics.passed > 0 }
            }
        }

        @Test func messagesAreNeverPassedOver() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                try database.run(
                    "insert into messages values (1, 1, 'x'); select realtime.send('{}', 'e', 'room', false)")
                try eventually("the message, and not the row") {
                    stage.broadcasts.count == 1 && stage.statistics.passed == 1
                }
            }
        }

        @Test func aWildcardHearsAllTables() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public"}"#, role: "anon", as: "eve")
                _ = try stage.join(Self.marker, as: "ann")
                _ = try database.also(
                    "create table later (id int primary key); grant select on later to anon", watching: "later")
                try database.run("insert into later values (1)")
                try stage.settle(database)
                #expect(stage.shown("eve", group).contains { $0.contains(#""table":"later""#) })
                #expect(stage.statistics.passed == 0)
            }
        }

        /// A hub that took what it passes over for silence would fall asleep between two of their writers, who would have to
        /// ring for it each time.
        @Test func theirWritersKeepTheHubAwake() throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            var rhythm = Doorbell.Rhythm()
            rhythm.linger = .seconds(1)
            try SubscriberStage.with(database, rhythm: rhythm) { stage in
                _ = try stage.join(Self.marker, as: "ann")
                try stage.settle(database)
                let session = try database.session()
                var dozes = stage.statistics.dozes
                let end = ContinuousClock.now + .milliseconds(1700)
                var (n, wroteAt) = (0, ContinuousClock.now)
                while ContinuousClock.now < end {
                    n += 1
                    try session.runScript("insert into messages values (\(n), 1, 'x')")
                    // On a machine that stands still for so long it may fall asleep.
                    if ContinuousClock.now - wroteAt > .milliseconds(500) { dozes = stage.statistics.dozes }
                    wroteAt = .now
                    usleep(50_000)
                }
                #expect(stage.statistics.dozes == dozes)
            }
        }
    }
}

/// Observes `messages`, and keeps the names of the tables that it was handed changes of.
private final class MessageObserver: ChangeObserver {
    private let seen = Mutex<[String]>([])

    var tables: Set<String> { Set(seen.withLock { $0 }) }
    var taken: Int { seen.withLock { $0.count } }
    var settled: Int { taken }

    func takeChanges(_ changes: [RowChange]) { seen.withLock { $0 += changes.map(\.table.name.text) } }
    func observesTable(_ table: Table) -> Bool { table.name == "messages" }
}
