import Administration
import ChangeFeed
import Foundation
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// The primary dies, and its standby takes over.
    @Suite struct FailoverTests {
        let primary = PostgresCluster(settings: "max_wal_senders = 4")
        let standby: PostgresCluster
        let database: Database

        init() throws {
            database = try primary.migratedDatabase().prepared("create table t (n int)", watching: "t")
            standby = try PostgresCluster(following: primary)
        }

        var onStandby: Database {
            Database(conninfo: database.conninfo.replacing(primary.directory, with: standby.directory))
        }
        var either: Database {
            Database(
                conninfo: database.conninfo.replacing(
                    primary.directory, with: "\(primary.directory),\(standby.directory)"))
        }

        func lines(_ range: Range<Int>) -> [String] { range.map { #"INSERT {"n":\#($0)}"# } }

        /// - Parameter losesTail: whether the last that the primary wrote never reaches the standby.
        func failOver(losesTail: Bool) throws {
            let log = Notes()
            let collector = Collector()
            var configuration = FeedConfiguration(conninfo: either.conninfo, node: "test")
            configuration.firstRetry = .milliseconds(100)
            let feed = ChangeFeed(configuration: configuration, logger: .noting(log), consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("the feed is ready") { feed.status == .ready }
            try database.run("insert into t select generate_series(0, 9)")
            try eventually("rows of the primary") { collector.count == 10 }
            try eventually("the standby has a cursor behind them") {
                try onStandby.value(
                    "\(Database.cursorBehindTheChanges) and (select count(*) from roost.change) = 10") != nil
            }
            var expected = lines(0..<10)
            let senders = try primary.processes().filter { try name(of: $0).contains("walsender") }
            #expect(senders.count == 1)
            try frozen(losesTail ? senders : []) {
                try database.run("insert into t select generate_series(10, 19)")
                expected += lines(10..<20)
                try eventually("the last of the primary") { collector.count == 20 }
                if !losesTail {
                    try eventually("the standby has them") {
                        try onStandby.value("select 1 from roost.change having count(*) = 20") != nil
                    }
                }
                // Stored, so that the hub believes what the standby never heard of.
                try eventually("the cursor is stored") { try database.value(Database.cursorBehindTheChanges) != nil }
                try primary.crash()
            }
            try standby.promote()
            let count = try onStandby.value("select count(*) from roost.change")
            #expect(count == (losesTail ? "10" : "20"))
            try onStandby.run("insert into t select generate_series(20, 29)")
            expected += lines(20..<30)
            try eventually("rows of the new primary, \(collector.lines)") { collector.count >= 30 }
            try onStandby.run("insert into t values (30)")
            try eventually("one more") { collector.count >= 31 }
            #expect(collector.lines == expected + lines(30..<31))
            #expect(log.all.contains { $0.contains("A standby was promoted (timeline 2, before 1)") })
        }

        @Test func goesOnWithThePromotedStandby() throws { try failOver(losesTail: false) }

        @Test func standbyThatLostTheTail() throws { try failOver(losesTail: true) }

        /// What the standby says of itself, and what the primary says of it.
        @Test func standbyIsNoPrimary() throws {
            let collector = Collector()
            let feed = ChangeFeed(
                configuration: FeedConfiguration(conninfo: onStandby.conninfo), logger: .silent, consumer: collector)
            feed.start()
            defer { feed.stop() }
            try eventually("a reason") {
                if case .connecting(let reason?) = feed.status { reason.contains("name the primary") } else { false }
            }
            let findings = Doctor.examineDatabase(conninfo: onStandby.conninfo).filter { $0.severity == .error }
            #expect(findings.first?.subject == "primary")
            var limits = DoctorLimits()
            limits.walBytes = 0
            func standbys() -> [Finding] {
                Doctor.examineDatabase(conninfo: database.conninfo, limits: limits).filter { $0.subject == "standbys" }
            }
            try eventually("the standby has all: \(standbys())") { standbys().map(\.severity) == [.good] }
            try onStandby.run("select pg_wal_replay_pause()")
            try database.run("insert into t select generate_series(1, 1000)")
            try eventually("it is behind: \(standbys())") {
                standbys().map(\.severity) == [.warning] && standbys().first?.message.contains("promoted now") ?? false
            }
            limits.walBytes = 67_108_864
            #expect(standbys().map(\.severity) == [.good])
        }

        private func name(of process: pid_t) throws -> String {
            try String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
        }
    }
}
