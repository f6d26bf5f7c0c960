package import Hub
import Synchronization

/// The messages of a loop's WebSockets of which pieces are in, and not all.
package struct PartialMessages {
    private struct Message {
        var bytes: [UInt8] = []
        /// Seconds on the loop's clock, when the first piece came.
        let since: Int32
    }
    private var messages: [Slot: Message] = [:]
    private let unfinished: UnfinishedBytes

    package init(_ unfinished: UnfinishedBytes) {
        self.unfinished = unfinished
    }

    package func has(_ slot: Slot) -> Bool { messages[slot] != nil }

    /// Keeps another piece.
    ///
    /// - Returns: the bytes of this message so far, and whether all loops together may hold them.
    package mutating func append(_ piece: UnsafeRawBufferPointer, of slot: Slot, second: Int32) -> (
        count: Int, fits: Bool
    ) {
        messages[slot, default: Message(since: second)].bytes.append(contentsOf: piece)
        let fits = unfinished.change(by: piece.count)
        let count = messages[slot]?.bytes.count ?? 0
        return (count, fits || count <= UnfinishedBytes.free)
    }

    /// The pieces that have come, which do not count as unfinished any more.
    package mutating func take(_ slot: Slot) -> [UInt8] {
        guard let pieces = messages.removeValue(forKey: slot)?.bytes else { return [] }
        _ = unfinished.change(by: -pieces.count)
        return pieces
    }

    /// Where there is little room left, the sockets whose messages are not finished in the time of an HTTP body. Otherwise
    /// they may take as long as they like.
    ///
    /// - Parameter timeout: seconds.
    package func overdue(at second: Int32, timeout: Int32) -> [Slot] {
        guard !messages.isEmpty, unfinished.isTight else { return [] }
        return messages.filter { $1.bytes.count > UnfinishedBytes.free && second - $1.since >= timeout }.map(\.key)
    }
}

/// What the loops hold of requests and WebSocket messages that are not complete: one cap for all of them, because each of
/// many may be as large as one message may be.
///
/// Whoever holds bytes says how many more or fewer they are now, and lets go of them where that is over the cap. Safe from
/// any thread.
package final class UnfinishedBytes: Sendable {
    private let cap: Atomic<Int>
    private let held = Atomic<Int>(0)

    package init(cap: Int) {
        self.cap = Atomic(cap)
    }

    /// Another cap from here on.
    package func adopt(cap: Int) { self.cap.store(cap, ordering: .relaxed) }

    package var count: Int { held.load(ordering: .relaxed) }

    /// What one connection may hold in any case: whoever fills the cap is not to keep others from sending what is small.
    package static let free = 16_384

    /// There is little left of it, so what was held for long is to go.
    package var isTight: Bool { count > cap.load(ordering: .relaxed) / 2 }

    /// Counts bytes, over the cap or not.
    ///
    /// - Parameter difference: negative for what is held no longer.
    /// - Returns: false where there is too much now; the bytes count until they are given back.
    package func change(by difference: Int) -> Bool {
        let now = held.wrappingAdd(difference, ordering: .relaxed).newValue
        return difference <= 0 || now <= cap.load(ordering: .relaxed)
    }
}
