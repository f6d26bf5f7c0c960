package import Hub
import Synchronization

/// Incomplete messages of a loop's WebSockets.
package struct PartialMessages {
    private struct Message {
        var bytes: [UInt8] = []
        /// When the first piece came, in seconds on the loop's clock.
        let since: Int32
    }
    private var messages: [Slot: Message] = [:]
    private let unfinished: UnfinishedBytes

    package init(_ unfinished: UnfinishedBytes) {
        self.unfinished = unfinished
    }

    package func has(_ slot: Slot) -> Bool { messages[slot] != nil }

    /// Appends another piece.
    ///
    /// - Returns: the bytes of this message so far, and whether the loops' common cap allows them.
    package mutating func append(_ piece: UnsafeRawBufferPointer, of slot: Slot, second: Int32) -> (
        count: Int, fits: Bool
    ) {
        messages[slot, default: Message(since: second)].bytes.append(contentsOf: piece)
        let fits = unfinished.change(by: piece.count)
        let count = messages[slot]?.bytes.count ?? 0
        return (count, fits || count <= UnfinishedBytes.free)
    }

    /// Removes and returns the pieces, which no longer count as unfinished.
    package mutating func take(_ slot: Slot) -> [UInt8] {
        guard let pieces = messages.removeValue(forKey: slot)?.bytes else { return [] }
        _ = unfinished.change(by: -pieces.count)
        return pieces
    }

    /// The sockets whose messages have taken longer than an HTTP body may, if little room is left. Otherwise they may
    /// take any time.
    ///
    /// - Parameter timeout: seconds.
    package func overdue(at second: Int32, timeout: Int32) -> [Slot] {
        guard !messages.isEmpty, unfinished.isTight else { return [] }
        return messages.filter { $1.bytes.count > UnfinishedBytes.free && second - $1.since >= timeout }.map(\.key)
    }
}

/// The bytes of incomplete requests and WebSocket messages on all loops. They share one cap, because each of many may
/// be as large as one message may be.
///
/// The owner of bytes reports each change, and drops its bytes if the result is over the cap. Safe from any thread.
package final class UnfinishedBytes: Sendable {
    private let cap: Atomic<Int>
    private let held = Atomic<Int>(0)

    package init(cap: Int) {
        self.cap = Atomic(cap)
    }

    /// Replaces the cap.
    package func adopt(cap: Int) { self.cap.store(cap, ordering: .relaxed) }

    package var count: Int { held.load(ordering: .relaxed) }

    /// The bytes that one connection may always store: a client that fills the cap must not keep others from sending
    /// small messages.
    package static let free = 16_384

    /// True if little is left, so that old unfinished bytes must go.
    package var isTight: Bool { count > cap.load(ordering: .relaxed) / 2 }

    /// Counts bytes, over the cap or not.
    ///
    /// - Parameter difference: negative for bytes that are dropped.
    /// - Returns: false if the cap is exceeded; the bytes count until they are given back.
    package func change(by difference: Int) -> Bool {
        let now = held.wrappingAdd(difference, ordering: .relaxed).newValue
        return difference <= 0 || now <= cap.load(ordering: .relaxed)
    }
}
