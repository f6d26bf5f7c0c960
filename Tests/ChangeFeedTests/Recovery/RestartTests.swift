import ChangeFeed
import Foundation
import Hub
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// A hub that was killed, and a server that was.
    @Suite struct RestartTests {
        private static let binding = #"{"event":"*","schema":"public","table":"t"}"#

        private static func prepared(_ cluster: PostgresCluster) throws -> Database {
            try cluster.migratedDatabase().chat().also(
                "create table t (n int primary key); grant select on t to authenticated", watching: "t")
        }

        @Test func whatTheLastHubsClientsMayLack() throws {
            let database = try Self.prepared(.shared)
            let oldest = Mutex(0)
            // A hub whose clients have acknowledged what mark 1 covers, and no more.
            var stored: [String?] = []
            try SubscriberStage.with(database, oldestMark: { oldest.withLock { $0 } }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                // Nothing was left; whoever has no mark yet starts where the process did.
                #expect(try stage.recovery(of: group, from: .restart).changes.isEmpty)
                for n in 0..<5 { try database.run("insert into t values (\(n))") }
                try eventually("five") { stage.count == 5 }
                // The last window may have ended too soon after a mark to get one of its own.
                let marks = stage.marks.count
                var rings = 0
                try eventually("a mark that covers them") {
                    rings += 1
                    try database.run("insert into marker values ('mark \(rings)')")
                    return stage.marks.count > marks
                }
                let mark = try #require(stage.marks.last)
                oldest.withLock { $0 = mark }
                usleep(1_100_000)
                for n in 5..<10 { try database.run("insert into t values (\(n))") }
                try eventually("ten") { stage.count == 10 }
                try eventually("it is stored") {
                    stored = try database.session().queryRows(
                        "select recovery::text, snapshot::text from roost.cursor where node = 'test'")[0]
                    let polls = stage.statistics.polls
                    rings += 1
                    try database.run("insert into marker values ('ring \(rings)')")
                    try eventually("a poll") { stage.statistics.polls > polls }
                    guard let recovery = stored[0].flatMap({ Snapshot($0) }),
                        let own = stored[1].flatMap({ Snapshot($0) })
                    else { return false }
                    return recovery.xmax < own.xmax && recovery.xmax > 0 && stage.recoverySees(recovery, stage.seen[4])
                }
            }
            // As kill -9 would have left it.
            try database.session().queryRows(
                "update roost.cursor set recovery = $1::pg_snapshot, snapshot = $2::pg_snapshot where node = 'test'",
                stored
            )
            .forEach { _ in }
            try database.run("insert into t values (10)")
            try SubscriberStage.with(database, recoveryWindow: .seconds(60)) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                let recovered = try stage.recovery(of: group, from: .restart)
                #expect(recovered.start == .resumed)
                let told = recovered.changes.map { ResumeTests.key($0.data) }
                #expect(told == (5...10).map { #"{"n":\#($0)"# })
                // Killed again before anybody came back, it is all the same: what was left is stored anew.
                #expect(try database.value("select recovery::text from roost.cursor where node = 'test'") == stored[0])
                try database.run("insert into t values (11)")
                try stage.settleQuietly(database)
                try eventually("the cursor moves, and what is recovered from does not") {
                    try database.session().queryRows(
                        "select recovery::text from roost.cursor where node = 'test' and snapshot::text <> $1",
                        [stored[1]]) == [[stored[0]]]
                }
            }
        }

        @Test func foreignLeftoversAreRefused() throws {
            let database = try Self.prepared(.shared)
            try SubscriberStage.with(database) { _ in }
            // It fits no history of this server.
            try database.run("update roost.cursor set snapshot = '9000000:9000000:', recovery = '9000000:9000000:'")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                #expect(try stage.recovery(of: group, from: .restart).start == .refused(.otherDatabase))
            }
        }

        @Test func marksOutliveACrashOfTheServer() throws {
            let cluster = PostgresCluster.restarted
            let database = try Self.prepared(cluster)
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                for n in 0..<3 { try database.run("insert into t values (\(n))") }
                try eventually("a mark") { stage.count == 3 && !stage.marks.isEmpty }
                let mark = try #require(stage.marks.last)
                let cursor = stage.seen[2].cursor
                for n in 3..<6 { try database.run("insert into t values (\(n))") }
                try eventually("six") { stage.count == 6 }
                let connections = stage.statistics.connections
                try cluster.stop("immediate")
                try cluster.start()
                try eventually("it is back") { stage.statistics.connections > connections && stage.isReady }
                try database.run("insert into t values (6)")
                let recovered = try stage.recovery(of: group, from: .mark(mark))
                #expect(recovered.start == .resumed)
                #expect(Set(recovered.changes.map(\.data)).isSuperset(of: stage.seen[3..<6].map(\.data)))
                #expect(recovered.changes.last.map { ResumeTests.key($0.data) } == #"{"n":6"#)
                // A server that crashed may have forgotten what was not stored when it did, so some of it comes again.
                let resumed = try stage.recovery(of: group, from: .cursor(cursor))
                #expect(resumed.start == .resumed)
                #expect(Set(resumed.changes.map(\.data)).isSuperset(of: stage.seen[3..<6].map(\.data)))
                #expect(resumed.changes.last.map { ResumeTests.key($0.data) } == #"{"n":6"#)
            }
        }

        @Test func nobodyWaitsForADatabaseThatIsAway() throws {
            let cluster = PostgresCluster.restarted
            let database = try Self.prepared(cluster)
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                try database.run("insert into t select generate_series(1, 20000)")
                let group = try stage.join(Self.binding, as: "ann")
                stage.takesRecoveries = false
                let id = try stage.recover(group, as: "ann", from: .mark(0))
                try eventually("it began") { !stage.recovered(id).changes.isEmpty }
                try cluster.stop("immediate")
                defer { do { try cluster.start() } catch { Issue.record(error) } }
                try eventually("it is told") { stage.recovered(id).isUnavailable }
                #expect(try stage.recovery(of: group, from: .mark(0)).isUnavailable)
            }
        }
    }
}

extension SubscriberStage {
    /// Whether a snapshot sees what brought a change.
    func recoverySees(_ snapshot: Snapshot, _ seen: Seen) -> Bool {
        FeedCursor(seen.cursor).map { $0.window.precedes(snapshot) || $0.window == snapshot } ?? false
    }

}
