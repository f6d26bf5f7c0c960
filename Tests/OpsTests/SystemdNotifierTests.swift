import Glibc
import Ops
import Testing

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
        try notifier.send(["READY=1", "STATUS=row changes flow"])
        try notifier.send(["WATCHDOG=1"])
        #expect(manager.next() == "READY=1\nSTATUS=row changes flow")
        #expect(manager.next() == "WATCHDOG=1")
    }

    @Test func anAbstractName() throws {
        let name = "roost-notify-\(getpid())"
        let manager = try Manager([0] + Array(name.utf8))
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": "@" + name]))
        try notifier.send(["READY=1"])
        #expect(manager.next() == "READY=1")
    }

    @Test func aManagerThatIsGoneIsAnError() throws {
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": "/tmp/roost-no-such-socket"]))
        #expect(throws: SystemdNotifier.Failure.self) { try notifier.send(["READY=1"]) }
    }

    @Test func aManagerThatTakesNothingHoldsNobodyUp() throws {
        let name = "roost-notify-full-\(getpid())"
        let manager = try Manager([0] + Array(name.utf8))
        let notifier = try #require(try SystemdNotifier(environment: ["NOTIFY_SOCKET": "@" + name]))
        let began = ContinuousClock.now
        // The queue is as long as net.unix.max_dgram_qlen.
        #expect(throws: SystemdNotifier.Failure.self) {
            for _ in 0..<100_000 { try notifier.send(["WATCHDOG=1"]) }
        }
        #expect(ContinuousClock.now - began < .seconds(5))
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
