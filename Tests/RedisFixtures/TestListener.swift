import Foundation
import Synchronization

/// A server of the tests' own that says what it is told to say, whatever it is asked: on a thread of its own, until it goes.
package final class TestListener {
    package let port: UInt16
    private let listener: Int32
    private let clients = Clients()

    private final class Clients: Sendable {
        let open = Mutex<[Int32]>([])
    }

    /// - Parameter greeting: is sent to whoever connects, at once.
    package init(saying greeting: [UInt8]) throws {
        port = TestPort.claim()
        listener = try Self.open(port, backlog: 64)
        let (listener, clients) = (listener, clients)
        Thread {
            while true {
                var polled = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
                poll(&polled, 1, -1)
                let client = accept(listener, nil, nil)
                if client < 0 { break }
                clients.open.withLock { $0.append(client) }
                Self.send(greeting, to: client)
            }
            clients.open.withLock { $0.forEach { close($0) } }
            close(listener)
        }.start()
    }

    /// How many have come so far.
    package var accepted: Int { clients.open.withLock { $0.count } }

    /// Says it to all who have come and are still there.
    package func say(_ bytes: [UInt8]) { clients.open.withLock { $0.forEach { Self.send(bytes, to: $0) } } }

    private static func send(_ bytes: [UInt8], to client: Int32) {
        _ = bytes.withUnsafeBytes { Glibc.send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) }
    }

    /// Wakes the thread, whose accept fails from now on.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// A port whose queue of connections is full, so that the kernel drops whoever comes now. It stays so while the descriptors are open.
    package static func full() throws -> (port: UInt16, descriptors: [Int32]) {
        let port = TestPort.claim()
        var descriptors = [try open(port, backlog: 0)]
        for _ in 0..<4 { descriptors.append(begin(to: port)) }
        return (port, descriptors)
    }

    static func open(_ port: UInt16, backlog: Int32, host: String = "127.0.0.1") throws -> Int32 {
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        let isBound = withAddress(port, host) { bind(made, $0, $1) == 0 }
        guard isBound, listen(made, backlog) == 0 else {
            throw RedisFixtureError(description: "cannot listen on \(port): \(String(cString: strerror(errno)))")
        }
        return made
    }

    static func connected(to port: UInt16) -> Int32? {
        let made = begin(to: port)
        var polled = pollfd(fd: made, events: Int16(POLLOUT), revents: 0)
        if poll(&polled, 1, 1000) == 1, polled.revents & Int16(POLLERR | POLLHUP) == 0 { return made }
        close(made)
        return nil
    }

    private static func begin(to port: UInt16) -> Int32 {
        let made = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        _ = withAddress(port) { connect(made, $0, $1) }
        return made
    }

    private static func withAddress<Result>(
        _ port: UInt16, _ host: String = "127.0.0.1", _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = TestPort.loopback(port)
        inet_pton(AF_INET, host, &address.sin_addr)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}
