package import Hub

/// The pace at which a socket is sent what it missed: never far beyond what the client has certainly read.
///
/// Kernels and proxies between the hub and a client buffer megabytes. For a slow client that is minutes of reading,
/// with the answer to its own ping at the end, so that it would give up the socket and start over, again and again.
/// Therefore pings go in between, and at most one more step follows a ping before its answer. Each answer is also an
/// acknowledgement, from which an interrupted client continues.
package struct RecoveryPace {
    /// Bytes from one ping to the next. At most two such steps are unread.
    package private(set) var step = 65_536
    /// Bytes between the last answered ping and the unanswered one.
    private var unanswered = 0
    /// Bytes since the last ping.
    private var sent = 0
    /// When the unanswered ping was sent, in monotonic milliseconds.
    package private(set) var pingedAt: Int64?

    private static let smallest = 16_384
    private static let largest = 262_144
    /// Milliseconds for an answer: up to `quick` the step grows, above `slow` it shrinks.
    private static let quick: Int64 = 250
    private static let slow: Int64 = 1000
    /// Milliseconds without an answer after which a socket that takes bytes is sent another step: it may be one that
    /// answers no pings.
    private static let patience: Int64 = 10_000

    package var hasRoom: Bool { unanswered + sent < 2 * step }
    /// True if everything sent is acknowledged.
    package var isIdle: Bool { pingedAt == nil && sent == 0 }
    /// True if a ping must follow.
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

    /// - Returns: whether to go on without an answer.
    package mutating func givesUp(at now: Int64) -> Bool {
        guard let pingedAt, now - pingedAt >= Self.patience else { return false }
        step = Self.smallest
        (unanswered, sent) = (0, 0)
        self.pingedAt = nil
        return true
    }
}

/// Recovery steps that wait until their sockets have room.
///
/// A member may have missed far more than its socket's cap, and the cap is for clients that do not read, not for those
/// with much to read. So a recovery goes no faster than its socket takes it: up to two batches from the feed wait here,
/// and the feed is notified only when they were taken.
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

    /// Removes and returns all items of a slot. The caller appends again those for which there is no room.
    package mutating func take(_ slot: Slot) -> [Item] {
        items.removeValue(forKey: slot) ?? []
    }
}
