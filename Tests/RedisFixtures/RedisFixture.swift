import Foundation
package import Redis
import Synchronization

/// A Redis server of a test's own: a child process in a folder of its own, on a free port of 127.0.0.1 and a Unix socket. It keeps its
/// data in memory unless its settings say otherwise. What still runs when the process ends is killed. For one thread at a time.
package final class RedisFixture {
    package let directory: String
    package let port: UInt16
    /// The port of TLS, where `certificates` were given.
    package let tlsPort: UInt16?
    private let arguments: [String]
    private let settings: [String]
    private var process: pid_t?

    /// Starts a server and waits until it answers.
    ///
    /// - Parameters:
    ///   - settings: lines of redis.conf.
    ///   - certificates: for a port with TLS beside the one without.
    ///   - arguments: `--sentinel` makes it a Sentinel.
    package init(
        _ settings: [String] = [], certificates: TestCertificates? = nil, arguments: [String] = [],
        waitsUntilReady: Bool = true
    ) throws {
        directory = NSTemporaryDirectory() + "roost-redis-" + UUID().uuidString.prefix(8)
        port = TestPort.claim()
        self.arguments = arguments
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var lines = ["bind 127.0.0.1", "port \(port)", "dir \(directory)", "daemonize no", "logfile \(directory)/log"]
        if !arguments.contains("--sentinel") {
            lines += [
                "unixsocket \(directory)/socket", "save \"\"", "appendonly no", "appendfsync no",
                "repl-diskless-sync-delay 0",
                "repl-ping-replica-period 1",
            ]
        }
        if let certificates {
            let port = TestPort.claim()
            tlsPort = port
            lines += [
                "tls-port \(port)", "tls-cert-file \(certificates.certificate)", "tls-key-file \(certificates.key)",
                "tls-ca-cert-file \(certificates.authority)", "tls-auth-clients no",
            ]
        } else {
            tlsPort = nil
        }
        self.settings = lines + settings
        Self.directories.withLock { $0.append(directory) }
        _ = Self.cleanUp
        try start(waitsUntilReady: waitsUntilReady)
    }

    deinit { end(SIGKILL) }

    package var address: RedisAddress { RedisAddress(.tcp(RedisAddress.Endpoint(host: "127.0.0.1", port: port))) }
    package var socket: RedisAddress { RedisAddress(.unix(directory + "/socket")) }

    /// Starts it again, with the data that its folder has, after `stop` or `kill`.
    package func start(_ more: [String] = [], waitsUntilReady: Bool = true) throws {
        let file = directory + "/redis.conf"
        try (settings + more).joined(separator: "\n").write(toFile: file, atomically: true, encoding: .utf8)
        let child = try spawn(["redis-server", file] + arguments)
        process = child
        Self.running.withLock { _ = $0.insert(child) }
        guard waitsUntilReady else { return }
        try eventuallyOnRedis("the server answers, see \(directory)/log") {
            // A server that wants a password answers too.
            do { return try session().runCommand("PING") == .status("PONG") } catch let failure as RedisFailure {
                return failure.kind == .password
            }
        }
    }

    /// In order: it saves where it is told to.
    package func stop() { end(SIGTERM) }

    package func kill() { end(SIGKILL) }

    private func end(_ signal: Int32) {
        guard let child = process else { return }
        process = nil
        Glibc.kill(child, SIGCONT)
        Glibc.kill(child, signal)
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        Self.running.withLock { _ = $0.remove(child) }
    }

    /// It does nothing any more, and its connections stay.
    package func freeze() throws {
        guard let process else { return }
        Glibc.kill(process, SIGSTOP)
        try eventuallyOnRedis("the process is stopped") {
            let status = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            return status.split(separator: ")").last?.hasPrefix(" T") ?? false
        }
    }

    package func thaw() { if let process { Glibc.kill(process, SIGCONT) } }

    /// Kills it while it is frozen, so that what it was sent stays unread.
    package func killFrozen() {
        guard let child = process else { return }
        process = nil
        Glibc.kill(child, SIGKILL)
        var status: Int32 = 0
        waitpid(child, &status, 0)
        Self.running.withLock { _ = $0.remove(child) }
    }

    package func session(_ credentials: RedisAddress.Credentials = .init()) throws(RedisFailure) -> RedisSession {
        var address = address
        address.credentials = credentials
        return try RedisSession(address, name: "test")
    }

    /// What the server says of itself in a section of INFO, by name.
    package func information(_ section: String) throws -> [String: String] {
        let text = try session().runCommand("INFO", .text(section)).text ?? ""
        let pairs = text.split(whereSeparator: \.isNewline).map { $0.split(separator: ":", maxSplits: 1) }
        return Dictionary(
            pairs.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) }, uniquingKeysWith: { $1 })
    }

    /// Follows the other server from now on, and waits until it has its data.
    package func follow(_ primary: RedisFixture) throws {
        _ = try session().runCommand("REPLICAOF", "127.0.0.1", .integer(Int64(primary.port)))
        try eventuallyOnRedis("the replica is in step") { try information("replication")["master_link_status"] == "up" }
    }

    /// Becomes a primary, with the data that it has.
    package func promote() throws { _ = try session().runCommand("REPLICAOF", "NO", "ONE") }

    private static let directories = Mutex<[String]>([])
    private static let running = Mutex<Set<pid_t>>([])
    private static let cleanUp: Int32 = atexit {
        for process in RedisFixture.running.withLock({ $0 }) { Glibc.kill(process, SIGKILL) }
        for directory in RedisFixture.directories.withLock({ $0 }) {
            do { try FileManager.default.removeItem(atPath: directory) } catch {
                print("could not remove \(directory)")
            }
        }
    }
}

package struct RedisFixtureError: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Waits until the condition holds.
///
/// - Throws: `RedisFixtureError` at the deadline.
package func eventuallyOnRedis(
    _ what: String, within limit: Duration = .seconds(40), _ condition: () throws -> Bool
) throws {
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        if ContinuousClock.now > deadline { throw RedisFixtureError(description: "not in time: \(what)") }
        usleep(1000)
    }
}

/// Starts a program that reads nothing and says nothing. Signals that a thread of Swift's tests blocks are not blocked in it.
private func spawn(_ arguments: [String]) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for descriptor: Int32 in 0...2 {
        posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
    }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    let texts = arguments.map { strdup($0) } + [nil]
    defer { texts.forEach { free($0) } }
    var child = pid_t()
    guard posix_spawnp(&child, arguments[0], &actions, &attributes, texts, environ) == 0 else {
        throw RedisFixtureError(description: "\(arguments[0]) does not start: apt-get install redis-server")
    }
    return child
}

/// Runs a program to its end.
func runForFixture(_ arguments: [String]) throws {
    let child = try spawn(arguments)
    var status: Int32 = 0
    guard waitpid(child, &status, 0) == child, status == 0 else {
        throw RedisFixtureError(description: "failed: \(arguments.joined(separator: " "))")
    }
}
