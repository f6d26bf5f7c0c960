import Wire

/// The traffic of one channel on this loop. Counting costs two additions per message; contents are inspected only while
/// an operator watches.
struct ChannelTraffic {
    /// Frames, each counted once regardless of protocol versions and receivers. Members with history get a different
    /// frame from those without.
    private(set) var messages = 0
    /// Frames times receivers.
    private(set) var deliveries = 0
    /// Both counts when an operator last asked.
    private var seen = (messages: 0, deliveries: 0)
    /// Nil unless an operator is watching the channel.
    private var observer: ChannelObserver?

    /// - Parameter receivers: not counting a sender that wants no echo.
    mutating func countEvent(_ event: StaticString, _ payload: [ArraySlice<UInt8>], receivers: Int, at now: HubTime) {
        countReceivers(receivers)
        guard isObserved(at: now) else { return }
        let bytes = Array(payload.joined())
        observer?.recordEvent(
            event.description, at: now.unix, receivers: receivers, bytes: bytes.count,
            Excerpt.makeText(JSON(trusted: bytes[...])))
    }

    mutating func countBroadcast(_ message: BroadcastMessage, receivers: Int, at now: HubTime) {
        countReceivers(receivers)
        guard isObserved(at: now) else { return }
        let (bytes, excerpt) =
            switch message {
            case .text(let payload): (payload.count, Excerpt.makeText(JSON(trusted: payload[...])))
            case .user(let user): (user.payload.count, "\(user.event): \(user.excerpt)")
            }
        observer?.recordEvent("broadcast", at: now.unix, receivers: receivers, bytes: bytes, excerpt)
    }

    /// Records a member's message that was refused.
    mutating func recordEvent(refused kind: MessageKind, _ refusal: Refusal, at now: HubTime) {
        guard isObserved(at: now) else { return }
        observer?.recordEvent(kind.rawValue, at: now.unix, receivers: 0, bytes: 0, refusal.message, isRefused: true)
    }

    private mutating func countReceivers(_ receivers: Int) {
        messages += 1
        deliveries += receivers
    }

    /// Returns the counts since the last call.
    mutating func takeNew() -> (messages: Int, deliveries: Int) {
        defer { seen = (messages, deliveries) }
        return (messages - seen.messages, deliveries - seen.deliveries)
    }

    // MARK: Observing

    /// Starts or extends the recording of the channel's events.
    ///
    /// - Returns: the events recorded so far.
    mutating func observeEvents(at now: HubTime) -> [TrafficEvent] {
        let until = now.monotonic + ChannelObserver.patience
        if let observer {
            observer.until = until
            return observer.events.elements
        }
        observer = ChannelObserver(until: until)
        return []
    }

    private mutating func isObserved(at now: HubTime) -> Bool {
        guard let observer else { return false }
        if now.monotonic < observer.until { return true }
        self.observer = nil
        return false
    }
}

/// An operator's watch on a channel. A class, so that a channel that is not watched pays only for a pointer.
private final class ChannelObserver {
    /// In monotonic milliseconds. Each look of the operator extends it.
    var until: Int64
    private(set) var events = Ring<TrafficEvent>(capacity: 50)
    private var number = 0

    /// The duration of a watch after each look, in milliseconds.
    static let patience: Int64 = 5000

    init(until: Int64) {
        self.until = until
    }

    func recordEvent(
        _ event: String, at unix: Int64, receivers: Int, bytes: Int, _ excerpt: String, isRefused: Bool = false
    ) {
        number += 1
        events.append(
            TrafficEvent(
                number: number, at: unix, event: event, receivers: receivers, bytes: bytes, excerpt: excerpt,
                isRefused: isRefused))
    }
}

/// An event that was sent to a channel's members on one loop, or a member's message that was refused.
package struct TrafficEvent: Sendable {
    package let number: Int
    /// Milliseconds since 1970.
    package let at: Int64
    package let event: String
    package let receivers: Int
    /// The payload's size.
    package let bytes: Int
    /// An excerpt of the payload, or the reason for the refusal.
    package let excerpt: String
    package let isRefused: Bool
}

extension UserBroadcast {
    fileprivate var excerpt: String {
        encoding == .json ? FrameHead.excerpt(ofJSON: payload) : "\(payload.count) bytes"
    }
}

/// A ring buffer of the last elements, oldest first.
package struct Ring<Element> {
    package let capacity: Int
    private var slots: [Element] = []
    /// The index of the oldest element once the ring is full.
    private var start = 0

    /// - Parameter capacity: at least 1. Memory is allocated as the ring fills.
    package init(capacity: Int) {
        precondition(capacity > 0, "a ring has room for something")
        self.capacity = capacity
    }

    package var count: Int { slots.count }

    package mutating func append(_ element: Element) {
        guard slots.count == capacity else { return slots.append(element) }
        slots[start] = element
        start = (start + 1) % capacity
    }

    package var elements: [Element] { Array(slots[start...]) + slots[..<start] }

    package var last: Element? {
        slots.isEmpty ? nil : slots[(start + slots.count - 1) % slots.count]
    }
}

extension Ring: Sendable where Element: Sendable {}
