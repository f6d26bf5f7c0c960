import Administration
import ChangeFeed
import Foundation
import Hub
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// What a client is told that says where it was.
    @Suite struct ResumeTests {
        /// `n` and `v` of a row as clients are shown it.
        static func key(_ data: String) -> String {
            guard let range = data.range(of: #""record":"#) ?? data.range(of: #""old_record":"#) else { return data }
            return String(data[range.upperBound...].prefix { $0 != "}" })
        }

        /// Rows by eight writers, one of them slow: inserts, and updates of rows that others wrote.
        static func write(_ database: Database, rounds: Int) throws {
            try concurrently(8) { writer in
                let session = try database.session()
                for round in 0..<rounds {
                    let n = writer * 10_000 + round
                    if writer == 0, round % 5 == 0 {
                        try session.runScript(
                            "begin; insert into t values (\(n), 0); select pg_sleep(0.03); "
                                + "update t set v = v + 1 where n = \(n); commit")
                    } else if round % 7 == 3 {
                        try session.runScript("begin; insert into t values (\(n), 0); rollback")
                    } else {
                        try session.runScript(
                            "begin; insert into t values (\(n), 0), (\(n + 5000), 0); "
                                + "update t set v = v + 1 where n = 99999; commit")
                    }
                }
            }
        }

        private static func prepared() throws -> Database {
            try PostgresCluster.shared.migratedDatabase().chat().also(
                "create table t (n int primary key, v int); grant select on t to authenticated; insert into t values (99999, 0)",
                watching: "t")
        }

        @Test func everyCursorBringsExactlyTheRest() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(
                    #"{"event":"*","schema":"public","table":"t"}"#,
                    #"{"event":"*","schema":"public","table":"marker"}"#,
                    as: "ann")
                try Self.write(database, rounds: 30)
                try stage.settle(database)
                let seen = stage.seen.filter { $0.group == group }
                #expect(seen.count > 500)
                let ids = try seen.indices.map { try stage.recover(group, as: "ann", from: .cursor(seen[$0].cursor)) }
                try eventually("all recoveries are over") { stage.unfinished == 0 }
                var wrong = 0
                for (index, id) in ids.enumerated() {
                    let recovered = stage.recovered(id)
                    let rest = seen[(index + 1)...].map(\.data)
                    if recovered.start != .resumed || recovered.faults > 0
                        || recovered.changes.map(\.data).sorted() != rest.sorted()
                        || !Self.isInOrder(recovered.changes)
                    {
                        wrong += 1
                    }
                }
                #expect(wrong == 0)
                // One look, however many ask.
                #expect(stage.statistics.recoveryReads < 30)
                print("\(seen.count) cursors resumed by \(stage.statistics.recoveryReads) readings")
                // The cursors of what was told again are as good.
                let middle = stage.recovered(ids[ids.count / 3])
                for place in stride(from: 0, to: middle.changes.count, by: 61) {
                    let again = try stage.recovery(of: group, from: .cursor(middle.changes[place].cursor))
                    #expect(Set(again.changes.map(\.data)).isSuperset(of: middle.changes[(place + 1)...].map(\.data)))
                    #expect(again.changes.count <= middle.changes.count)
                }
                let end = try #require(middle.seam)
                #expect(try stage.recovery(of: group, from: .cursor(end.cursor)).changes.isEmpty)
            }
        }

        /// While a recovering member's filter is bound, the feed asks Postgres, and nobody else is taken in: Swift ends the
        /// process where the registry of those who recover changes in the middle of its own change.
        @Test func nobodyComesWhileAFilterIsBound() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public","table":"t"}"#, as: "ann")
                let markers = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "bob")
                try stage.settle(database)
                let cursor = try #require(stage.seen.last { $0.group == markers }?.cursor)
                // Whether the table exists is asked then.
                try Watcher.unwatch("t", conninfo: database.conninfo)
                try eventually("its filter cannot be bound any more") {
                    // A look at the catalog is due twice a second.
                    try database.run("notify roost")
                    return stage.refusal(group) != nil
                }
                let (first, second) = (stage.nextRecovery(), stage.nextRecovery())
                // The first comes in the feed's next turn, and the second in the same one, just before filters are bound.
                stage.withdrawSessionList { _ in
                    stage.recover(
                        first,
                        RecoveryQuestion(group: group, claims: SubscriberStage.claims("ann"), from: .cursor(cursor)))
                    stage.withdrawSessionList { _ in
                        stage.recover(
                            second,
                            RecoveryQuestion(
                                group: markers, claims: SubscriberStage.claims("bob"), from: .cursor(cursor)))
                    }
                }
                for id in [first, second] {
                    try eventually("its end") { stage.recovered(id).isOver }
                    #expect(stage.recovered(id).faults == 0)
                }
                #expect(stage.recovered(second).seam != nil && stage.statistics.connections == 1)
            }
        }

        /// Whether the one row that all writers change came version by version.
        static func isInOrder(_ changes: [SubscriberStage.Seen]) -> Bool {
            let versions = changes.compactMap { seen -> Int? in
                guard seen.data.contains(#""record":{"n":99999,"#), let at = seen.data.range(of: #","v":"#) else {
                    return nil
                }
                return Int(seen.data[at.upperBound...].prefix { $0.isNumber })
            }
            return versions == versions.sorted() && Set(versions).count == versions.count
        }

        @Test func nothingIsLostOrRepeatedAtTheSeam() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let binding = #"{"event":"*","schema":"public","table":"t"}"#
                let group = try stage.join(binding, as: "ann")
                let isOver = Mutex(false)
                let ids = Mutex<[(RecoveryID, Int)]>([])
                try concurrently(2) { role in
                    if role == 0 {
                        try Self.write(database, rounds: 120)
                        isOver.withLock { $0 = true }
                        return
                    }
                    while !isOver.withLock({ $0 }) {
                        let seen = stage.seen
                        guard seen.count > 10 else { continue }
                        let place = Int.random(in: 0..<seen.count)
                        let id = try stage.recover(group, as: "ann", from: .cursor(seen[place].cursor))
                        ids.withLock { $0.append((id, place)) }
                        try eventually("its end") { stage.recovered(id).isOver }
                    }
                }
                try stage.settleQuietly(database)
                let seen = stage.seen.filter { $0.group == group }
                try eventually("all recoveries are over") { stage.unfinished == 0 }
                let asked = ids.withLock { $0 }
                for (id, place) in asked {
                    let stream = stage.stream(id, in: group)
                    #expect(stream.map(\.data).sorted() == seen[(place + 1)...].map(\.data).sorted(), "from \(place)")
                    #expect(Self.isInOrder(stream))
                }
                print(
                    "\(asked.count) recoveries beside \(seen.count) changes, \(stage.statistics.recoveryReads) readings"
                )
            }
        }

        @Test func marksBringAllSince() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(#"{"event":"*","schema":"public","table":"t"}"#, as: "ann")
                var before: [(mark: Int, seen: Int)] = []
                for n in 0..<20 {
                    // A mark comes a little later than its change, so what comes must be this one's.
                    try stage.settleQuietly(database)
                    let mark = stage.marks.last ?? 0
                    try database.run("insert into t values (\(n), 0)")
                    try eventually("row \(n) and its mark") { stage.count > n && stage.marks.last ?? 0 > mark }
                    before.append((try #require(stage.marks.last), stage.count))
                }
                for point in before {
                    let recovered = try stage.recovery(of: group, from: .mark(point.mark))
                    #expect(recovered.changes.map(\.data) == stage.seen[point.seen...].map(\.data))
                }
                let restart = try stage.recovery(of: group, from: .mark(0))
                #expect(restart.start == .resumed)
                #expect(try stage.recovery(of: group, from: .mark(1_000_000)).changes.isEmpty)
            }
        }
    }
}

extension SubscriberStage {
    /// Waits until nothing more comes, where nobody is subscribed to the marker.
    func settleQuietly(_ database: Database) throws {
        var before = -1
        try eventually("nothing more comes") {
            let polls = statistics.polls
            try database.run("notify roost")
            try eventually("two polls") { statistics.polls > polls + 2 }
            defer { before = count }
            return before == count
        }
    }
}
