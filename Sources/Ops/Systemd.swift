import Glibc

/// Decides what to report to a service manager. Pure: time is passed in.
///
/// **Ready** is reported once row changes flow. A hub without its database still serves clients, and tells them so; it
/// reports ready after `patience`, as otherwise the manager would give up on the start, and everything that waits for
/// it (a boot, an upgrade of the package) would wait for the database. `STATUS=` then tells the difference.
/// **Alive** is reported when every event loop has turned since the last report.
package struct ServiceReport: Sendable {
    /// The hub's state at the time of a report.
    package struct Status {
        /// The reason why the hub is not ready, as in `/readyz`; nil when it is.
        package var problem: String?
        /// One number for each event loop, which grows at least once a second while the loop turns.
        package var heartbeats: [Int]
        /// The time since the ports were opened.
        package var age: Duration

        package init(problem: String?, heartbeats: [Int], age: Duration) {
            (self.problem, self.heartbeats, self.age) = (problem, heartbeats, age)
        }
    }

    package static let patience = Duration.seconds(10)

    private let watchdog: Duration?
    private var isReady = false
    private var isStopping = false
    /// The outcome of the last reload.
    private var note: String?
    /// The last `STATUS=` text.
    private var words: String?
    /// The heartbeats when the hub was last reported alive.
    private var heartbeats: [Int] = []
    private var aliveAt = Duration.zero

    /// - Parameter watchdog: how often the manager expects a report; nil for never.
    package init(watchdog: Duration?) {
        self.watchdog = watchdog
    }

    /// The news to report. Call once a second, and after changes.
    package mutating func newLines(_ status: Status) -> [String] {
        var lines: [String] = []
        if !isReady, !isStopping, status.problem == nil || status.age >= Self.patience {
            isReady = true
            lines.append("READY=1")
        }
        let words = statusText(for: status)
        if words != self.words {
            self.words = words
            lines.append("STATUS=\(words)")
        }
        if isAlive(status) { lines.append("WATCHDOG=1") }
        return lines
    }

    private mutating func isAlive(_ status: Status) -> Bool {
        guard let watchdog, status.age - aliveAt >= watchdog, stuckLoop(status) == nil else { return false }
        (aliveAt, heartbeats) = (status.age, status.heartbeats)
        return true
    }

    /// The first loop that has not turned since the hub was last reported alive.
    private func stuckLoop(_ status: Status) -> Int? {
        zip(status.heartbeats, heartbeats).enumerated().first { $1.0 == $1.1 }?.offset
    }

    private func statusText(for status: Status) -> String {
        var words = status.problem.map { isStopping ? $0 : "not ready: \($0)" } ?? "row changes flow"
        // A loop turns once a second; one more second allows for a busy machine.
        if let watchdog, status.age - aliveAt >= watchdog + .seconds(2), let loop = stuckLoop(status) {
            words += "; event loop \(loop) does not turn"
        }
        if let note { words += "; \(note)" }
        return Self.singleLine(words)
    }

    // MARK: Reloading and stopping

    /// The configuration is about to be reloaded.
    ///
    /// - Parameter microseconds: the monotonic clock, which systemd 253 and later compare with the request.
    package func reloadLines(at microseconds: Int64) -> [String] {
        isReady && !isStopping ? ["RELOADING=1", "MONOTONIC_USEC=\(microseconds)"] : []
    }

    /// - Parameter outcome: a few words such as `configuration reloaded`; the manager shows them after the status.
    package mutating func reloadedLines(_ outcome: String, _ status: Status) -> [String] {
        note = outcome
        // Before the hub is ready, this would end the start and not the reload.
        let ending = isReady && !isStopping ? ["READY=1"] : []
        return ending + newLines(status)
    }

    /// - Parameter limit: the longest time of the drain; the manager waits for it, whatever its own timeout.
    package mutating func stoppingLines(within limit: Duration) -> [String] {
        isStopping = true
        note = nil
        return ["STOPPING=1", "EXTEND_TIMEOUT_USEC=\(limit.components.seconds * 1_000_000)"]
    }

    /// A line break ends an assignment, and messages of Postgres may contain some.
    private static func singleLine(_ text: String) -> String {
        text.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

/// Sends systemd the lines of `ServiceReport`, as datagrams to the socket that `NOTIFY_SOCKET` names.
///
/// The protocol consists of lines `NAME=VALUE` and is promised to stay stable (sd_notify(3), Notes), so no library is
/// needed.
package struct SystemdNotifier: Sendable {
    /// The socket's name in `sun_path`: a path ends with a zero, an abstract name begins with one (unix(7)).
    private let name: [UInt8]
    /// Open for the life of the process: one that has run out of files can still report that it is alive.
    private let socket: Int32

    /// The description completes a sentence.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Nil unless a service manager asks for reports.
    package init?(environment: [String: String]) throws(Failure) {
        guard let text = environment["NOTIFY_SOCKET"], !text.isEmpty else { return nil }
        switch text.first {
        case "/": name = Array(text.utf8) + [0]
        case "@": name = [0] + text.utf8.dropFirst()
        default: throw Failure(description: "NOTIFY_SOCKET is \(text), which is neither a path nor an @ and a name")
        }
        guard name.count <= MemoryLayout.size(ofValue: sockaddr_un().sun_path) else {
            throw Failure(description: "NOTIFY_SOCKET is longer than the name of a socket may be: \(text)")
        }
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw Failure(description: "there is no socket for it: \(Self.reason)") }
        // A manager that reads nothing must not block the sender.
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout.size(ofValue: patience)))
    }

    /// Waits for a second at most.
    ///
    /// - Parameter lines: such as `READY=1`.
    package func sendLines(_ lines: [String]) throws(Failure) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name is as long as the address says, including zeros.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let message = Array(lines.joined(separator: "\n").utf8)
        var sent: Int
        repeat {
            sent = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, message, message.count, Int32(MSG_NOSIGNAL), $0, length)
                }
            }
        } while sent < 0 && errno == EINTR
        guard sent == message.count else { throw Failure(description: Self.reason) }
    }

    private static var reason: String { String(cString: strerror(errno)) }
}

/// The interval at which systemd expects signs of life (`WatchdogSec=`).
package enum SystemdWatchdog {
    /// Half of systemd's timeout, as sd_watchdog_enabled(3) advises; nil if there is none.
    ///
    /// - Parameter pid: this process. The variables may be inherited from another process that they were meant for.
    package static func interval(environment: [String: String], pid: Int32) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        if let wanted = environment["WATCHDOG_PID"], wanted != String(pid) { return nil }
        return .microseconds(microseconds) / 2
    }
}
