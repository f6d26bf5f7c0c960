import CWebSockets
import Glibc
import Hub

/// The one place that puts bytes on sockets.
///
/// A plain connection with nothing queued in lws takes ready frames straight by `send(2)`: measured at the price of the
/// system call, where lws' own writable round costs 2.5 times as much. What the socket does not take goes on through
/// lws. TLS connections go through lws always, in its writable callback.
struct SocketWriter {
    enum Outcome {
        /// The socket took this many bytes, and takes no more for now if that is not all of them.
        case wrote(Int)
        /// The peer is gone; lws will notice by itself.
        case gone
    }

    static func send(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Outcome {
        guard let base = bytes.baseAddress else { return .wrote(0) }
        if lws_partial_buffered(socket.wsi) != 0 { return .wrote(0) }
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

    /// Gives bytes to lws, which keeps what the socket does not take.
    static func handOver(_ bytes: UnsafeRawBufferPointer, to socket: Socket) -> Outcome {
        let base = bytes.bindMemory(to: UInt8.self).baseAddress
        return roost_write_framed(socket.wsi, base, bytes.count) < 0 ? .gone : .wrote(bytes.count)
    }
}
