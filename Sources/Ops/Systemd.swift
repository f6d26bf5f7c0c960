import Glibc

/// Decides what a service manager is told of the hub. Pure: time is passed in.
///
/// **Ready** is said when row changes flow. A hub whose database is away serves all the same, and tells clients so; it says
/// ready after `patience`, or the manager would give the start up, and whoever waits for it (a boot, an upgrade of the
/// package) would wait for the database. `STATUS=` tells the difference then.
/// **Alive** is said when every event loop has turned since the last time.
package struct ServiceReport: Sendable {
    /// The state of the hub that it decides by.
    package struct Status {
        /// Why the hub is not ready, as `/readyz` says it; nil when it is.
        package var problem: String?
        /// A number for each event loop that grows as the loop turns, at least once in a second.
        package var heartbeats: [Int]
        /// How long ago the ports were opened.
        package var age: Duration

        package init(problem: String?, heartbeats: [Int], age: Duration) {
            (self.problem, self.heartbeats, self.age) = (problem, heartbeats, age)
        }
    }

    package static let patience = Duration.seconds(10)

    private let watchdog: Duration?
    private var isReady = false
    private var isStopping = false
    /// How the last reading of the configuration ended.
    private var note: String?
    /// The last line `STATUS=`.
    private var words: String?
    /// Those at which the hub was last said to be alive.
    private var heartbeats: [Int] = []
    private var aliveAt = Duration.zero

    /// - Parameter watchdog: how often the manager wants to hear that the hub is alive; nil for never.
    package init(watchdog: Duration?) {
        self.watchdog = watchdog
    }

    /// What is new; call once a second, and where something has changed.
    package mutating func lines(_ status: Status) -> [String] {
        var lines: [String] = []
        if !isReady, !isStopping, status.problem == nil || status.age >= Self.patience {
            isReady = true
            lines.append("READY=1")
        }
        let words = words(for: status)
        if words != self.words {
            self.words = words
            lines.append("STATUS=\(words)")
        }
        if isAlive(status) { lines.append("WATCHDOG=1") }
        return lines
    }

    private mutating func isAlive(_ status: Status) -> Bool {
        guard let watchdog, status.age - aliveAt >= watchdog, stuck(status) == nil else { return false }
        (aliveAt, heartbeats) = (status.age, status.heartbeats)
        return true
    }

    /// The first loop that did not turn since the hub was last said to be alive.
    private func stuck(_ status: Status) -> Int? {
        zip(status.heartbeats, heartbeats).enumerated().first { $1.0 == $1.1 }?.offset
    }

    private func words(for status: Status) -> String {
        var words = status.problem.map { isStopping ? $0 : "not ready: \($0)" } ?? "row changes flow"
        // A loop turns once in a second; one more is for a busy machine.
        if let watchdog, status.age - aliveAt >= watchdog + .seconds(2), let loop = stuck(status) {
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
    package mutating func reloaded(_ outcome: String, _ status: Status) -> [String] {
        note = outcome
        // Before, this would end the start and not the reload.
        let ending = isReady && !isStopping ? ["READY=1"] : []
        return ending + lines(status)
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

/// Sends systemd what `ServiceReport` decides, by datagrams to the socket that `NOTIFY_SOCKET` names.
///
/// The protocol is lines of `NAME=VALUE`, and promised to stay as it is (sd_notify(3), Notes), so no library is needed.
package struct SystemdNotifier: Sendable {
    /// The socket's name as `sun_path` has it: a path ends with a zero, an abstract name begins with one (unix(7)).
    private let name: [UInt8]
    /// Open for as long as the process lives: one that has run out of files can still say that it is alive.
    private let socket: Int32

    /// The sentence says what becomes of it.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Nil where no service manager asked for it.
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
        // A manager that takes nothing must not hold up who tells it.
        var patience = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout.size(ofValue: patience)))
    }

    /// Waits for a second at most.
    ///
    /// - Parameter lines: as `READY=1`.
    package func send(_ lines: [String]) throws(Failure) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name is as long as the address says, and zeros count.
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

/// How often systemd wants to hear that a service is alive (`WatchdogSec=`).
package enum SystemdWatchdog {
    /// Half of the time after which systemd would act, as sd_watchdog_enabled(3) advises; nil where it is not asked for.
    ///
    /// - Parameter pid: of this process. The variables may be meant for another one, which they were handed down from.
    package static func interval(environment: [String: String], pid: Int32) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        if let wanted = environment["WATCHDOG_PID"], wanted != String(pid) { return nil }
        return .microseconds(microseconds) / 2
    }
}
