import CSendRing
import CWebSockets
import Glibc
import Hub

/// The one place that puts bytes on sockets.
///
/// A connection with nothing queued in lws takes ready frames straight by `send(2)`: measured at the price of the system call, where
/// lws' own writable round costs 2.5 times as much. What the socket does not take goes on through lws. Over TLS its tunnel encrypts them on
/// the spot.
struct SocketWriter {
    enum Outcome {
        /// The socket took this many bytes, and takes no more for now if that is not all of them.
        case wrote(Int)
        /// The peer is gone; lws will notice by itself.
        case gone
    }

    static func send(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Outcome {
        guard let base = bytes.baseAddress else { return .wrote(0) }
        if socket.isHeldByLWS { return .wrote(0) }
        if let tunnel = socket.tunnel {
            // No pong follows a close frame.
            if socket.isClosing { roost_tunnel_put_behind(tunnel) }
            let taken = roost_tunnel_send(tunnel, base.assumingMemoryBound(to: UInt8.self), bytes.count)
            return taken < 0 ? .gone : .wrote(taken)
        }
        let sent = Glibc.send(socket.fd, base, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        return outcome(sent >= 0 ? sent : -Int(errno))
    }

    /// - Parameter result: the bytes that a send took, or a negated `errno`.
    static func outcome(_ result: Int) -> Outcome {
        switch Int32(truncatingIfNeeded: -result) {
        case _ where result >= 0: .wrote(result)
        // Also where the kernel has no memory for it: that passes, and the peer is there.
        case EAGAIN, EINTR, ENOMEM, ENOBUFS, ECANCELED: .wrote(0)
        default: .gone
        }
    }

    /// Gives the rest of a frame to lws, or to the tunnel, which keeps what the socket does not take.
    static func handOver(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Outcome {
        let base = bytes.bindMemory(to: UInt8.self).baseAddress
        if let tunnel = socket.tunnel {
            return roost_tunnel_keep(tunnel, base, bytes.count) < 0 ? .gone : .wrote(bytes.count)
        }
        return roost_write_framed(socket.wsi, base, bytes.count) < 0 ? .gone : .wrote(bytes.count)
    }
}

/// The same bytes to many sockets by one system call, where the kernel lets us.
///
/// A broadcast is hardly more than one `send` for each socket, and entering the kernel is a fifth of what that costs
/// (docs/performance.md). Used by the thread that made it.
package final class SendRing {
    /// The most sockets at a time.
    static let batch = 256
    /// What became of a send is not known: the ring failed with it under way.
    static let unknown = -EIO
    private let ring: OpaquePointer
    private var results = [Int32](repeating: 0, count: SendRing.batch)

    /// Nil, with `errno`, where there is no io_uring: before Linux 5.6, and where it is forbidden, as in many containers.
    package init?() {
        guard let ring = roost_send_ring_create(UInt32(Self.batch)) else { return nil }
        self.ring = ring
    }

    deinit { roost_send_ring_destroy(ring) }

    /// What became of each send, in the sockets' order: the bytes that were taken, or a negated `errno`. Nothing of it is
    /// under way any more. Shorter than `sockets` where the kernel refused the rest; the ring is of no use then.
    package func send(_ bytes: UnsafeRawBufferPointer, to sockets: [Int32]) -> ArraySlice<Int32> {
        let handed = roost_send_ring_send(
            ring, bytes.baseAddress, bytes.count, sockets, &results, UInt32(min(sockets.count, Self.batch)))
        return results[..<Int(handed)]
    }
}
