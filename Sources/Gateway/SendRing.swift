import CSendRing
import Glibc

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
