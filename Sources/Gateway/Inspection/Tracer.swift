import Glibc
package import Hub
package import Wire

/// One frame that passed over a connection while an operator watched it.
package struct TraceEntry: Sendable {
    package let number: Int
    /// Milliseconds since 1970.
    package let at: Int64
    package let isOutgoing: Bool
    package let head: FrameHead
    /// Without the frame header for an incoming message, with it for an outgoing frame.
    package let bytes: Int
    /// Bytes that were waiting for the socket at that time.
    package let queue: Int
}

/// Records the frames of the few connections that operators are watching. While none are watched, a frame costs only
/// the check for that.
package struct Tracer {
    private struct Trace {
        var entries = Ring<TraceEntry>(capacity: 100)
        var number = 0
        /// Seconds on the loop's clock. An operator's page renews its watch before then.
        var until: Int32
    }

    private var traces: [Slot: Trace] = [:]

    /// Seconds that a watch lasts.
    private static let patience: Int32 = 5

    package init() {}

    package var isIdle: Bool { traces.isEmpty }

    /// The watched connections, except one.
    package func slots(except: Slot?) -> [Slot] { traces.keys.filter { $0 != except } }

    /// Starts or renews the watch on a connection, and returns the frames recorded since it began.
    package mutating func look(at slot: Slot, second: Int32) -> [TraceEntry] {
        traces[slot, default: Trace(until: 0)].until = second + Self.patience
        return traces[slot]?.entries.elements ?? []
    }

    package mutating func forget(_ slot: Slot) {
        if !traces.isEmpty { traces[slot] = nil }
    }

    package mutating func forget(before second: Int32) {
        if !traces.isEmpty { traces = traces.filter { $0.value.until > second } }
    }

    package mutating func note(_ slot: Slot, isOutgoing: Bool, _ head: FrameHead, bytes: Int, queue: Int) {
        guard var trace = traces.removeValue(forKey: slot) else { return }
        trace.number += 1
        trace.entries.append(
            TraceEntry(
                number: trace.number, at: Self.now, isOutgoing: isOutgoing, head: head, bytes: bytes, queue: queue))
        traces[slot] = trace
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}

/// The recording of frames for an operator who watches a connection.
extension Delivery {
    /// Call only while connections are watched, because it searches the audience.
    mutating func trace(_ frame: Frame, to audience: [Slot], except: Slot?) {
        let watched = tracer.slots(except: except).filter(audience.contains)
        guard !watched.isEmpty else { return }
        let head = FrameHead(frame)
        for slot in watched { trace(frame, head, to: slot) }
    }

    mutating func trace(_ frame: Frame, _ head: FrameHead, to slot: Slot) {
        guard sockets[Int(slot)].isOpen else { return }
        tracer.note(slot, isOutgoing: true, head, bytes: frame.bytes.count, queue: pending.bytes(slot))
    }

    mutating func trace(received message: [UInt8], isBinary: Bool, from slot: Slot) {
        let head = FrameHead(message: message[...], isBinary: isBinary)
        tracer.note(slot, isOutgoing: false, head, bytes: message.count, queue: pending.bytes(slot))
    }
}
