import Foundation
import Synchronization

/// A proxy of TCP in front of a server of the tests, that does to its connections what networks do: cut them, reset them, keep back what
/// comes. On a thread of its own until `stop`. What a method says is done when it returns. From any thread.
package final class TestProxy: Sendable {
    private struct Pair {
        let client: Int32
        let server: Int32
    }

    private struct Content {
        var target: UInt16
        var pairs: [Pair] = []
        var holdsBack = false
        var isStopping = false
    }

    package let port: UInt16
    private let listener: Int32
    private let content: Mutex<Content>

    /// - Parameter host: where it listens: an address of loopback.
    package init(to target: UInt16, host: String = "127.0.0.1") throws {
        port = TestPort.claim()
        listener = try TestListener.open(port, backlog: 64, host: host)
        content = Mutex(Content(target: target))
        Thread { [self] in while turn() {} }.start()
    }

    package func stop() { content.withLock { $0.isStopping = true } }

    /// Where the next connections lead.
    package func lead(to target: UInt16) { content.withLock { $0.target = target } }

    /// Nothing that the server says is passed on from now on.
    package func holdBack(_ holdsBack: Bool) { content.withLock { $0.holdsBack = holdsBack } }

    /// Resets the connections (RST), which clients have made in this order; of `index` alone, where it is given.
    package func reset(_ index: Int? = nil) {
        content.withLock { content in
            let chosen = index.map { [content.pairs[$0]] } ?? content.pairs
            for pair in chosen {
                var linger = linger(l_onoff: 1, l_linger: 0)
                setsockopt(pair.client, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
                Self.close(pair)
            }
            content.pairs.removeAll { pair in chosen.contains { $0.client == pair.client } }
        }
    }

    package var connections: Int { content.withLock { $0.pairs.count } }

    private static func close(_ pair: Pair) {
        Glibc.close(pair.client)
        Glibc.close(pair.server)
    }

    /// Looks at all sockets within the lock: nothing waits there, and no socket is closed meanwhile.
    private func turn() -> Bool {
        usleep(500)
        return content.withLock { content in
            guard !content.isStopping else {
                content.pairs.forEach(Self.close)
                Glibc.close(listener)
                return false
            }
            let client = accept(listener, nil, nil)
            if client >= 0 {
                if let server = TestListener.connected(to: content.target) {
                    content.pairs.append(Pair(client: client, server: server))
                } else {
                    Glibc.close(client)
                }
            }
            content.pairs.removeAll { pair in
                let goesOn =
                    Self.pass(from: pair.client, to: pair.server)
                    && (content.holdsBack || Self.pass(from: pair.server, to: pair.client))
                if !goesOn { Self.close(pair) }
                return !goesOn
            }
            return true
        }
    }

    private static func pass(from: Int32, to: Int32) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(from, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count == 0 { return false }
        if count < 0 { return errno == EAGAIN }
        var sent = 0
        while sent < count {
            let piece = buffer.withUnsafeBytes {
                send(to, $0.baseAddress?.advanced(by: sent), count - sent, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if piece < 0, errno != EAGAIN { return false }
            sent += max(piece, 0)
        }
        return true
    }
}
