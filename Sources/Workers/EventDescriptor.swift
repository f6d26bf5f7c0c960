import CLinux
package import Glibc
import Synchronization

/// A wake-up from one thread to another: a descriptor that is readable from `signal` until `clear` (eventfd(2)), so
/// that it can be polled together with sockets. Thread-safe.
package final class EventDescriptor: Sendable {
    package let descriptor: Int32

    package init() {
        descriptor = eventfd(0, roost_eventfd_flags)
        precondition(descriptor >= 0, "no file descriptor left")
    }

    deinit { close(descriptor) }

    package func signal() { _ = eventfd_write(descriptor, 1) }

    package func clear() {
        var count: eventfd_t = 0
        _ = eventfd_read(descriptor, &count)
    }

    /// Waits until the descriptor is readable, and leaves it so.
    ///
    /// - Parameter deadline: nil to wait indefinitely.
    /// - Returns: false if the deadline passed first.
    package func wait(until deadline: ContinuousClock.Instant?) -> Bool {
        var polled = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
        while poll(&polled, 1, deadline.map { milliseconds(until: $0) } ?? -1) <= 0 {
            if let deadline, ContinuousClock.now >= deadline { return false }
        }
        return true
    }
}

/// Tells a worker to stop, and by when. Thread-safe.
package final class StopSignal: Sendable {
    private let endsAt = Mutex<ContinuousClock.Instant?>(nil)
    private let event = EventDescriptor()

    package init() {}

    /// Readable from the moment the worker should stop.
    package var descriptor: Int32 { event.descriptor }

    /// - Parameter deadline: when the worker must have finished; the first of several counts.
    package func stop(by deadline: ContinuousClock.Instant) {
        endsAt.withLock { $0 = $0 ?? deadline }
        event.signal()
    }

    /// Nil until the worker is told to stop.
    package var deadline: ContinuousClock.Instant? { endsAt.withLock { $0 } }

    package var isStopping: Bool { deadline != nil }
}

/// Values that one thread publishes and others read, each property on its own. Thread-safe.
@dynamicMemberLookup
package final class Published<Value: Sendable>: Sendable {
    private let content: Mutex<Value>

    package init(_ value: Value) { content = Mutex(value) }

    package var value: Value {
        get { content.withLock { $0 } }
        set { content.withLock { $0 = newValue } }
    }

    package subscript<Member: Sendable>(dynamicMember path: WritableKeyPath<Value, Member>) -> Member {
        get { content.withLock { $0[keyPath: path] } }
        set { content.withLock { $0[keyPath: path] = newValue } }
    }
}

/// A timeout for poll(2): whole milliseconds, rounded up so that a wait never ends just before its deadline.
package func milliseconds(until deadline: ContinuousClock.Instant) -> Int32 {
    let left = deadline - .now
    guard left > .zero else { return 0 }
    let (seconds, attoseconds) = left.components
    return Int32(clamping: min(seconds, 100_000) * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
}

/// poll(2) with a resolution finer than a millisecond.
package func poll(_ polled: inout [pollfd], until deadline: ContinuousClock.Instant) {
    let (seconds, attoseconds) = max(.zero, min(deadline - .now, .seconds(100_000))).components
    roost_poll(&polled, UInt(polled.count), Int(seconds), Int(attoseconds / 1_000_000_000))
}

extension Duration {
    /// Whole milliseconds, rounded down.
    package var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
