package import Hub

/// How fast a socket is sent what it missed: no more is sent than a little beyond what it has certainly read.
///
/// Kernels and proxies between the hub and a client take megabytes. To a slow one that is minutes of reading, with the
/// answer to its own ping behind it, so that it gives the socket up and begins anew for ever. So pings go in between, and
/// what follows one waits for the one before to be answered. Each answer is an acknowledgement, too: whoever
/// breaks off goes on there.
package struct RecoveryPace {
    /// Bytes from one ping to the next. At most two such steps are unread.
    package private(set) var step = 65_536
    /// Bytes between the last ping that was answered and the one that is not.
    private var unanswered = 0
    /// Bytes since the last ping.
    private var sent = 0
    /// When the ping went out that is not answered, in monotonic milliseconds.
    package private(set) var pingedAt: Int64?

    private static let smallest = 16_384
    private static let largest = 262_144
    /// Milliseconds for an answer within which a step may be larger, and above which it is to be smaller.
    private static let quick: Int64 = 250
    private static let slow: Int64 = 1000
    /// After so long without an answer a socket that takes bytes is sent another step: it may be one that answers no pings.
    private static let patience: Int64 = 10_000

    package var hasRoom: Bool { unanswered + sent < 2 * step }
    /// All that was sent is acknowledged.
    package var isIdle: Bool { pingedAt == nil && sent == 0 }
    /// Whether a ping is to follow.
    package var wantsPing: Bool { pingedAt == nil && sent >= step }

    package init() {}

    package mutating func sends(_ bytes: Int) { sent += bytes }

    package mutating func pings(at now: Int64) {
        unanswered += sent
        sent = 0
        pingedAt = now
    }

    package mutating func isAnswered(at now: Int64) {
        guard let pingedAt else { return }
        let took = now - pingedAt
        if took <= Self.quick { step = min(Self.largest, step * 2) }
        if took > Self.slow { step = max(Self.smallest, step / 2) }
        unanswered = 0
        self.pingedAt = nil
    }

    /// - Returns: whether it goes on without an answer.
    package mutating func givesUp(at now: Int64) -> Bool {
        guard let pingedAt, now - pingedAt >= Self.patience else { return false }
        step = Self.smallest
        (unanswered, sent) = (0, 0)
        self.pingedAt = nil
        return true
    }
}

/// Steps of recoveries that wait until their sockets have room.
///
/// What a member missed may be far more than its socket's cap, and a cap is for those who do not read, not for those who
/// have much to read. So a recovery goes on no faster than its socket takes it: what the feed sent on, two batches at
/// most, waits here, and the feed is told that they were taken when they were.
package struct DeferredSteps {
    package enum Item {
        case step(RecoveryID, RecoveryStep)
        case taken(@Sendable () -> Void)
    }

    private var items: [Slot: [Item]] = [:]

    package init() {}

    package func has(_ slot: Slot) -> Bool { items[slot] != nil }

    package mutating func append(_ item: Item, for slot: Slot) {
        items[slot, default: []].append(item)
    }

    /// All that waits for a slot, which is forgotten. Whoever takes it appends again what there is no room for.
    package mutating func take(_ slot: Slot) -> [Item] {
        items.removeValue(forKey: slot) ?? []
    }
}
