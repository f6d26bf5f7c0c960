import Glibc
import Ops
import Testing

@Suite("What systemd is told")
struct ServiceReportTests {
    private var report = ServiceReport(watchdog: .seconds(15))

    private mutating func lines(_ problem: String?, at second: Int, heartbeats: [Int] = []) -> [String] {
        report.newLines(.init(problem: problem, heartbeats: heartbeats, age: .seconds(second)))
    }

    @Test mutating func readyWhenRowChangesFlowAndOnlyOnce() {
        #expect(lines("connecting to the database", at: 0) == ["STATUS=not ready: connecting to the database"])
        #expect(lines("connecting to the database", at: 1) == [])
        #expect(lines(nil, at: 2) == ["READY=1", "STATUS=row changes flow"])
        #expect(lines(nil, at: 3) == [])
        #expect(lines("the database is away", at: 4) == ["STATUS=not ready: the database is away"])
        #expect(lines(nil, at: 5) == ["STATUS=row changes flow"])
    }

    @Test mutating func readyWithoutADatabaseWhenThePatienceIsOver() {
        _ = lines("no route to host", at: 0)
        #expect(lines("no route to host", at: 9) == [])
        #expect(lines("no route to host", at: 10) == ["READY=1"])
        #expect(lines(nil, at: 11) == ["STATUS=row changes flow"])
    }

    @Test mutating func whatPostgresSaysIsOneLineAndSetsNothing() {
        #expect(lines("no\nREADY=1\r\nSTATUS=fine", at: 0) == ["STATUS=not ready: no READY=1 STATUS=fine"])
    }

    @Test mutating func aliveWhenEveryLoopHasTurned() {
        _ = lines(nil, at: 0, heartbeats: [0, 0])
        #expect(lines(nil, at: 14, heartbeats: [14, 14]) == [])
        #expect(lines(nil, at: 15, heartbeats: [15, 14]) == ["WATCHDOG=1"])
        #expect(lines(nil, at: 29, heartbeats: [29, 14]) == [])
        #expect(lines(nil, at: 30, heartbeats: [30, 14]) == [], "the second loop stands still")
        #expect(lines(nil, at: 32, heartbeats: [32, 14]) == ["STATUS=row changes flow; event loop 1 does not turn"])
        #expect(lines(nil, at: 33, heartbeats: [33, 15]) == ["STATUS=row changes flow", "WATCHDOG=1"])
    }

    @Test mutating func nobodyWhoDoesNotAskHearsThatItIsAlive() {
        report = ServiceReport(watchdog: nil)
        _ = lines(nil, at: 0, heartbeats: [0])
        #expect(lines(nil, at: 1000, heartbeats: [0]) == [])
    }

    @Test mutating func aReload() {
        _ = lines(nil, at: 0)
        #expect(report.reloadLines(at: 123) == ["RELOADING=1", "MONOTONIC_USEC=123"])
        let status = ServiceReport.Status(problem: nil, heartbeats: [], age: .seconds(1))
        #expect(
            report.reloadedLines("configuration reloaded", status)
                == ["READY=1", "STATUS=row changes flow; configuration reloaded"])
        #expect(lines(nil, at: 2) == [])
    }

    @Test mutating func aReloadBeforeTheHubIsReadyDoesNotSayThatItIs() {
        _ = lines("connecting", at: 0)
        #expect(report.reloadLines(at: 123) == [])
        let status = ServiceReport.Status(problem: "connecting", heartbeats: [], age: .seconds(1))
        #expect(report.reloadedLines("reloaded", status) == ["STATUS=not ready: connecting; reloaded"])
    }

    @Test mutating func stoppingAsksForTimeAndIsNeverReadyAgain() {
        #expect(report.stoppingLines(within: .seconds(15)) == ["STOPPING=1", "EXTEND_TIMEOUT_USEC=15000000"])
        #expect(lines("the hub is draining", at: 60, heartbeats: [1]) == ["STATUS=the hub is draining", "WATCHDOG=1"])
        #expect(report.reloadLines(at: 1) == [])
    }
}

@Suite("The socket of systemd")
struct SystemdNotifierTests {
    /// A datagram socket as systemd has it, bound to a name as `sun_path` has it.
    private final class Manager {
        private let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)

        init(_ name: [UInt8]) throws {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
            let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
            let bound = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(socket, $0, length) }
            }
            try #require(bound == 0, "bind: \(String(cString: strerror(errno)))")
        }

        deinit { close(socket) }

        func next() -> String {
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
    }

    @Test func aPath() throws {
        let path = "/tmp/roost-notify-\(getpid())"
        defer { unlink(path) }
        let manager = try Manager(Array(path.utf8) + [0])
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": path]))
        try notifier.sendLines(["READY=1", "STATUS=row changes flow"])
        try notifier.sendLines(["WATCHDOG=1"])
        #expect(manager.next() == "READY=1\nSTATUS=row changes flow")
        #expect(manager.next() == "WATCHDOG=1")
    }

    @Test func anAbstractName() throws {
        let name = "roost-notify-\(getpid())"
        let manager = try Manager([0] + Array(name.utf8))
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": "@" + name]))
        try notifier.sendLines(["READY=1"])
        #expect(manager.next() == "READY=1")
    }

    @Test func aManagerThatIsGoneIsAnError() throws {
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": "/tmp/roost-no-such-socket"]))
        #expect(throws: SystemdNotifier.Failure.self) { try notifier.sendLines(["READY=1"]) }
    }

    @Test func aManagerThatTakesNothingHoldsNobodyUp() throws {
        let name = "roost-notify-full-\(getpid())"
        let manager = try Manager([0] + Array(name.utf8))
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": "@" + name]))
        let began = ContinuousClock.now
        // The queue is as long as net.unix.max_dgram_qlen.
        #expect(throws: SystemdNotifier.Failure.self) {
            for _ in 0..<100_000 { try notifier.sendLines(["WATCHDOG=1"]) }
        }
        #expect(ContinuousClock.now - began < .seconds(60))
        #expect(manager.next() == "WATCHDOG=1")
    }

    @Test func nobodyAsked() throws {
        #expect(try SystemdNotifier(environment: [:]) == nil)
        #expect(try SystemdNotifier(environment: ["NOTIFY_SOCKET": ""]) == nil)
    }

    @Test(arguments: ["vsock:2:1234", "relative", "/" + String(repeating: "x", count: 120)])
    func namesThatCannotBe(name: String) {
        #expect(throws: SystemdNotifier.Failure.self) { try SystemdNotifier(environment: ["NOTIFY_SOCKET": name]) }
    }

    @Test func theWatchdogIsHeededTwiceAsOftenAsAskedAndOnlyByItsProcess() {
        func interval(_ environment: [String: String]) -> Duration? {
            SystemdWatchdog.interval(environment: environment, pid: 42)
        }
        #expect(interval(["WATCHDOG_USEC": "30000000"]) == .seconds(15))
        #expect(interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "42"]) == .seconds(15))
        #expect(interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "41"]) == nil)
        #expect(interval(["WATCHDOG_USEC": "0"]) == nil)
        #expect(interval(["WATCHDOG_USEC": "x"]) == nil)
        #expect(interval([:]) == nil)
    }
}
