import CSendRing
import CWebSockets
import Glibc
import Hub

/// The one place that writes frames to clients' sockets.
///
/// If nothing is queued in lws, ready frames go straight to `send(2)`: that costs no more than the system call, while
/// lws's own writable round costs 2.5 times as much. lws finishes a frame that the socket takes in part. With TLS, the
/// tunnel encrypts the frames immediately.
struct SocketWriter {
    enum Outcome {
        /// The socket took this many bytes; if that is not all of them, it takes no more for now.
        case wrote(Int)
        /// The peer is gone; lws will notice by itself.
        case gone
    }

    static func send(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Outcome {
        guard let base = bytes.baseAddress else { return .wrote(0) }
        if socket.isHeldByLWS { return .wrote(0) }
        if let tunnel = socket.tunnel {
            // No pong may follow a close frame, so it goes after the pongs that lws wrote to the socket pair.
            if socket.isClosing { roost_tunnel_put_behind(tunnel) }
            let taken = roost_tunnel_send(tunnel, base.assumingMemoryBound(to: UInt8.self), bytes.count)
            return taken < 0 ? .gone : .wrote(taken)
        }
        let sent = Glibc.send(socket.fd, base, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        return outcome(sent >= 0 ? sent : -Int(errno))
    }

    /// - Parameter result: the number of bytes sent, or a negated `errno`.
    static func outcome(_ result: Int) -> Outcome {
        switch Int32(truncatingIfNeeded: -result) {
        case _ where result >= 0: .wrote(result)
        // Includes a lack of kernel memory: that passes, and the peer is still there.
        case EAGAIN, EINTR, ENOMEM, ENOBUFS, ECANCELED: .wrote(0)
        default: .gone
        }
    }

    /// Gives the rest of a frame to lws or to the tunnel, which stores what the socket does not take.
    static func handOver(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Outcome {
        let base = bytes.bindMemory(to: UInt8.self).baseAddress
        if let tunnel = socket.tunnel {
            return roost_tunnel_keep(tunnel, base, bytes.count) < 0 ? .gone : .wrote(bytes.count)
        }
        return roost_write_framed(socket.wsi, base, bytes.count) < 0 ? .gone : .wrote(bytes.count)
    }
}

/// Sends the same bytes to many sockets with one system call, if the kernel supports it.
///
/// A broadcast is little more than one `send` per socket, and entering the kernel is a fifth of that cost
/// (docs/performance.md). Confined to the thread that created it.
package final class SendRing {
    /// The most sockets per call.
    static let batch = 256
    /// The result of a send is unknown, because the ring failed while it was under way.
    static let unknown = -EIO
    private let ring: OpaquePointer
    private var results = [Int32](repeating: 0, count: SendRing.batch)

    /// Nil, with `errno`, if there is no io_uring: before Linux 5.6, or if it is forbidden, as in many containers.
    package init?() {
        guard let ring = roost_send_ring_create(UInt32(Self.batch)) else { return nil }
        self.ring = ring
    }

    deinit { roost_send_ring_destroy(ring) }

    /// Returns the result of each send, in the sockets' order: the number of bytes sent, or a negated `errno`. No send
    /// is under way any more. Shorter than `sockets` if the kernel refused the rest; the ring is then unusable.
    package func send(_ bytes: UnsafeRawBufferPointer, to sockets: [Int32]) -> ArraySlice<Int32> {
        let handed = roost_send_ring_send(
            ring, bytes.baseAddress, bytes.count, sockets, &results, UInt32(min(sockets.count, Self.batch)))
        return results[..<Int(handed)]
    }
}
