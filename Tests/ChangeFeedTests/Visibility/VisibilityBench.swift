import Administration
import ChangeFeed
import Foundation
import Hub
import Testing

@testable import PostgresFixtures

extension FeedTests {
    /// Decisions a second, through the whole feed: from the commit to what the loops are handed. Run alone, with
    /// `ROOST_BENCH=1 swift test -c release --filter VisibilityBench`; prints, and asserts only that all arrived.
    @Suite(.enabled(if: getenv("ROOST_BENCH") != nil)) struct VisibilityBench {
        private static let all = #"{"event":"*","schema":"public","table":"messages"}"#

        /// - Parameter rowsPerCommit: of `rows` in all.
        private func measure(
            _ name: String, scoped: Bool, members: Int, rows: Int, rowsPerCommit: Int, rounds: Int = 3
        ) throws {
            let database = try PostgresCluster.shared.migratedDatabase().chat()
            try database.run("insert into participants select 1, 'm' || n from generate_series(1, \(members)) n")
            if scoped {
                try database.run(
                    "insert into roost.scope values ('messages', 'conversation', array['participants']::regclass[])")
                try Watcher.watch("participants", conninfo: database.conninfo)
            }
            try database.run("analyze")
            try SubscriberStage.with(database) { stage in
                let group = try stage.join(Self.all, as: "ann")
                for n in 1...members { try stage.admit("m\(n)", to: group) }
                let session = try database.session()
                var number = 0
                var figures: [Double] = []
                var latencies: [Double] = []
                for _ in 0...rounds {
                    let before = stage.count
                    let start = ContinuousClock.now
                    for _ in 0..<(rows / rowsPerCommit) {
                        try session.runScript(
                            "insert into messages select n, 1, 'a message of an ordinary length', false "
                                + "from generate_series(\(number + 1), \(number + rowsPerCommit)) n")
                        number += rowsPerCommit
                        let sent = ContinuousClock.now
                        if rowsPerCommit == 1 {
                            let wanted = before + number % rows
                            if number % rows != 0 { stage.spin { $0 >= wanted } }
                            latencies.append((ContinuousClock.now - sent) / .milliseconds(1))
                        }
                    }
                    stage.spin { $0 >= before + rows }
                    figures.append(Double(rows * (members + 1)) / ((ContinuousClock.now - start) / .seconds(1)))
                }
                #expect(stage.shown("m\(members)", group).count == rows * (rounds + 1))
                // The first round compiles.
                let sorted = figures.dropFirst().sorted()
                var line = "\(name): \(sorted.map { String(format: "%.0f", $0) }.joined(separator: " ")) decisions/s"
                if !latencies.isEmpty {
                    let all = latencies.sorted()
                    line += String(
                        format: "; a commit to its delivery p50 %.1f ms, p99 %.1f ms", all[all.count / 2],
                        all[all.count * 99 / 100])
                }
                print(line)
            }
        }

        @Test func fullWindows() throws {
            try measure(
                "500 members, 2,000 rows a commit", scoped: false, members: 500, rows: 2000, rowsPerCommit: 2000)
        }

        @Test func oneRowAtATime() throws {
            try measure("500 members, a row a commit", scoped: false, members: 500, rows: 100, rowsPerCommit: 1)
        }

        @Test func fullWindowsWithScope() throws {
            try measure(
                "500 members, 10,000 rows a commit, scoped", scoped: true, members: 500, rows: 10_000,
                rowsPerCommit: 10_000)
        }

        @Test func oneRowAtATimeWithScope() throws {
            try measure("500 members, a row a commit, scoped", scoped: true, members: 500, rows: 300, rowsPerCommit: 1)
        }
    }
}
