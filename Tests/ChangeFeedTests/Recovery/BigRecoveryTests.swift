import ChangeFeed
import Foundation
import Hub
import Synchronization
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Many who recover, and much that they missed.
    @Suite struct BigRecoveryTests {
        private static let binding = #"{"event":"*","schema":"public","table":"t"}"#

        private static func prepared() throws -> Database {
            try PostgresCluster.shared.migratedDatabase().chat().also(
                "create table t (n int primary key, text text); grant select on t to authenticated", watching: "t")
        }

        private static var rows: Int { getenv("ROOST_SLOW") != nil ? 200_000 : 30_000 }

        /// A subscriber whose rows arrive while another one is brought very many; how long each took.
        @Test func liveRowsComeBetweenSlices() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                _ = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "bob")
                let filler = String(repeating: "x", count: 200)
                try database.run("insert into t select n, '\(filler)' from generate_series(1, \(Self.rows)) n")
                let group = try stage.join(Self.binding, as: "ann")
                let session = try database.session()
                try stage.settleQuietly(database)
                func latency(_ text: String) throws -> Duration {
                    let before = stage.count
                    let start = ContinuousClock.now
                    try session.runScript("insert into marker values ('\(text)')")
                    try eventually("row \(text)") { stage.count > before }
                    return ContinuousClock.now - start
                }
                let calm = try (0..<40).map { try latency("calm\($0).") }.sorted()
                let began = ContinuousClock.now
                let id = try stage.recover(group, as: "ann", from: .mark(0))
                var busy: [Duration] = []
                while stage.unfinished > 0 { busy.append(try latency("busy\(busy.count).")) }
                let took = ContinuousClock.now - began
                #expect(stage.recovered(id).changes.count == Self.rows)
                #expect(Set(stage.recovered(id).changes.map { ResumeTests.key($0.data) }).count == Self.rows)
                busy.sort()
                print(
                    """
                    \(Self.rows) rows recovered in \(took), \(Int(Double(Self.rows) / (took / .seconds(1)))) rows/s, \
                    \(stage.statistics.recoveryReads) readings; live rows calm p50 \(calm[20]) max \(calm[39]), \
                    beside it p50 \(busy[busy.count / 2]) p99 \(busy[busy.count * 99 / 100]) max \(busy.last ?? .zero) \
                    (\(busy.count))
                    """)
                #expect(busy.count > 3)
                #expect(busy[busy.count / 2] < .milliseconds(250))
            }
        }

        /// The session of a reading rests for the next one.
        @Test func aSessionThatPostgresEndedWhileItRestedIsNotReadOn() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t select n, 'x' from generate_series(1, 5000) n")
                try eventually("the rows") { stage.count == 5000 }
                let start = try #require(stage.seen.first)
                let sessions = "select pid::text from pg_stat_activity where datname = current_database()"
                let session = try database.session()
                let before = try session.queryRows(sessions)
                #expect(try stage.recovery(of: group, from: .cursor(start.cursor)).changes.count == 4999)
                let resting = try session.queryRows(sessions).filter { !before.contains($0) }
                #expect(resting.count == 1)
                _ = try session.queryRows("select pg_terminate_backend($1::int4)", [resting.first?.first ?? nil])
                try eventually("its end") { try session.queryRows(sessions).allSatisfy { !resting.contains($0) } }
                let again = try stage.recovery(of: group, from: .cursor(start.cursor))
                #expect(!again.isUnavailable)
                #expect(again.changes.count == 4999)
            }
        }

        @Test func oneReadingServesAll() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let group = try stage.join(Self.binding, as: "ann")
                try database.run("insert into t select n, 'x' from generate_series(1, 100) n")
                try eventually("the rows") { stage.count == 100 }
                let seen = stage.seen
                func reads(_ count: Int) throws -> Int {
                    let before = stage.statistics.recoveryReads
                    let ids = try (0..<count).map { number in
                        try stage.recover(
                            group, as: "user\(number)",
                            from: number % 2 == 0 ? .mark(0) : .cursor(seen[number % 100].cursor))
                    }
                    try eventually("all of them") { stage.unfinished == 0 }
                    for (number, id) in ids.enumerated() {
                        let rest = number % 2 == 0 ? 100 : 99 - number % 100
                        #expect(stage.recovered(id).changes.count == rest)
                    }
                    // The figures are published with the polls.
                    try stage.settleQuietly(database)
                    return stage.statistics.recoveryReads - before
                }
                let few = try reads(4)
                let many = try reads(400)
                print("4 recoveries: \(few) readings; 400: \(many)")
                #expect(many <= few + 10)
            }
        }

        @Test func aSlowSocketHoldsUpNobody() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                let live = try stage.join(#"{"event":"*","schema":"public","table":"marker"}"#, as: "bob")
                try database.run("insert into t select n, 'x' from generate_series(1, 20000) n")
                let group = try stage.join(Self.binding, as: "ann")
                stage.takesRecoveries = false
                let slow = try stage.recover(group, as: "ann", from: .mark(0))
                try eventually("it began") { !stage.recovered(slow).changes.isEmpty }
                for n in 0..<20 { try database.run("insert into marker values ('beside \(n)')") }
                try eventually("rows beside it") { stage.seen.filter { $0.group == live }.count == 20 }
                // Nothing is piled up for it, and it is put aside.
                usleep(1_200_000)
                #expect(stage.recovered(slow).changes.count <= 3 * 256)
                // Who lacks little is served meanwhile, by its own slice.
                try database.run("insert into t values (-1, 'last')")
                stage.takesRecoveries = true
                try eventually("the slow one catches up") { stage.recovered(slow).isOver }
                let told = stage.stream(slow, in: group)
                #expect(told.count >= 20_001)
                #expect(Set(told.map { ResumeTests.key($0.data) }).count == 20_001)
                #expect(told.count == 20_001)
            }
        }

        @Test func whoIsGoneIsForgotten() throws {
            let database = try Self.prepared()
            try SubscriberStage.with(database, oldestMark: { 0 }) { stage in
                try database.run("insert into t select n, 'x' from generate_series(1, 20000) n")
                let group = try stage.join(Self.binding, as: "ann")
                stage.takesRecoveries = false
                let gone = try stage.recover(group, as: "ann", from: .mark(0))
                try eventually("it began") { !stage.recovered(gone).changes.isEmpty }
                try stage.abandon(gone)
                let count = stage.recovered(gone).changes.count
                stage.takesRecoveries = true
                #expect(try stage.recovery(of: group, from: .mark(0)).changes.count == 20_000)
                #expect(stage.recovered(gone).changes.count <= count + 512)
                #expect(!stage.recovered(gone).isOver)
            }
        }
    }
}
