/// What a service manager is to be told, decided from how the hub stands. Pure: time is passed in.
///
/// **Ready** is said when row changes flow. A hub whose database is away serves all the same, and tells clients so; it says
/// ready after `patience`, or the manager would give the start up, and whoever waits for it (a boot, an upgrade of the
/// package) would wait for the database. `STATUS=` tells the difference then.
/// **Alive** is said when every event loop has turned since the last time.
package struct ServiceReport: Sendable {
    /// What is looked at.
    package struct Standing {
        /// Why the hub is not ready, as `/readyz` says it; nil when it is.
        package var problem: String?
        /// For each event loop a number that grows as it turns, at least once in a second.
        package var beats: [Int]
        /// Since the ports were opened.
        package var age: Duration

        package init(problem: String?, beats: [Int], age: Duration) {
            (self.problem, self.beats, self.age) = (problem, beats, age)
        }
    }

    package static let patience = Duration.seconds(10)

    private let watchdog: Duration?
    private var isReady = false
    private var isStopping = false
    /// How the last reading of the configuration ended.
    private var note: String?
    private var status: String?
    private var beats: [Int] = []
    private var aliveAt = Duration.zero

    /// - Parameter watchdog: how often the manager wants to hear that the hub is alive; nil for never.
    package init(watchdog: Duration?) {
        self.watchdog = watchdog
    }

    /// What is new; call once a second, and where something has changed.
    package mutating func lines(_ standing: Standing) -> [String] {
        var lines: [String] = []
        if !isReady, !isStopping, standing.problem == nil || standing.age >= Self.patience {
            isReady = true
            lines.append("READY=1")
        }
        let status = words(standing)
        if status != self.status {
            self.status = status
            lines.append("STATUS=\(status)")
        }
        if isAlive(standing) { lines.append("WATCHDOG=1") }
        return lines
    }

    private mutating func isAlive(_ standing: Standing) -> Bool {
        guard let watchdog, standing.age - aliveAt >= watchdog, stuck(standing) == nil else { return false }
        (aliveAt, beats) = (standing.age, standing.beats)
        return true
    }

    /// The first loop that did not turn since the hub was last said to be alive.
    private func stuck(_ standing: Standing) -> Int? {
        zip(standing.beats, beats).enumerated().first { $1.0 == $1.1 }?.offset
    }

    private func words(_ standing: Standing) -> String {
        var words = standing.problem.map { isStopping ? $0 : "not ready: \($0)" } ?? "row changes flow"
        // A loop turns once in a second; one more is for a busy machine.
        if let watchdog, standing.age - aliveAt >= watchdog + .seconds(2), let loop = stuck(standing) {
            words += "; event loop \(loop) does not turn"
        }
        if let note { words += "; \(note)" }
        return Self.line(words)
    }

    // MARK: Reloading and stopping

    /// The configuration is about to be read again.
    ///
    /// - Parameter microseconds: of the monotonic clock; systemd 253 and later hold it against the request.
    package func reloads(at microseconds: Int64) -> [String] {
        isReady && !isStopping ? ["RELOADING=1", "MONOTONIC_USEC=\(microseconds)"] : []
    }

    /// - Parameter outcome: a few words, as `configuration reloaded`; the manager shows them behind the status.
    package mutating func reloaded(_ outcome: String, _ standing: Standing) -> [String] {
        note = outcome
        // Before, this would end the start and not the reload.
        let ending = isReady && !isStopping ? ["READY=1"] : []
        return ending + lines(standing)
    }

    /// - Parameter limit: how long the drain takes at most; the manager waits for so long, whatever it is set to.
    package mutating func stops(within limit: Duration) -> [String] {
        isStopping = true
        note = nil
        return ["STOPPING=1", "EXTEND_TIMEOUT_USEC=\(limit.components.seconds * 1_000_000)"]
    }

    /// A line ends an assignment, and what Postgres says may have several.
    private static func line(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}
