import Wire

/// How much a channel has said on this loop, and what, as long as an operator looks: two additions for each message, and a
/// look into it only then.
struct ChannelTraffic {
    /// Frames, each counted once whatever the number of its protocol versions and receivers. What members with history
    /// are sent is another frame than what those without are.
    private(set) var messages = 0
    /// Frames times receivers.
    private(set) var deliveries = 0
    /// What both were when an operator looked last.
    private var seen = (messages: 0, deliveries: 0)
    /// Nil unless an operator looks at the channel.
    private var observer: ChannelObserver?

    /// - Parameter receivers: without the sender, where it wants no echo.
    mutating func count(_ event: StaticString, _ payload: [ArraySlice<UInt8>], receivers: Int, at now: HubTime) {
        count(receivers)
        guard isObserved(at: now) else { return }
        let bytes = Array(payload.joined())
        observer?.note(
            event.description, at: now.unix, receivers: receivers, bytes: bytes.count,
            Excerpt.of(JSON(trusted: bytes[...])))
    }

    mutating func count(_ message: BroadcastMessage, receivers: Int, at now: HubTime) {
        count(receivers)
        guard isObserved(at: now) else { return }
        let (bytes, excerpt) =
            switch message {
            case .text(let payload): (payload.count, Excerpt.of(JSON(trusted: payload[...])))
            case .user(let user): (user.payload.count, "\(user.event): \(user.excerpt)")
            }
        observer?.note("broadcast", at: now.unix, receivers: receivers, bytes: bytes, excerpt)
    }

    /// What a member sent and nobody was told of.
    mutating func note(refused kind: MessageKind, _ refusal: Refusal, at now: HubTime) {
        guard isObserved(at: now) else { return }
        observer?.note(kind.rawValue, at: now.unix, receivers: 0, bytes: 0, refusal.message, isRefused: true)
    }

    private mutating func count(_ receivers: Int) {
        messages += 1
        deliveries += receivers
    }

    /// What was counted since this was asked last.
    mutating func takeNew() -> (messages: Int, deliveries: Int) {
        defer { seen = (messages, deliveries) }
        return (messages - seen.messages, deliveries - seen.deliveries)
    }

    // MARK: Observing

    /// From here on and for a while the channel's events are noted.
    ///
    /// - Returns: those that were noted so far.
    mutating func observe(at now: HubTime) -> [TrafficEvent] {
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

/// An operator's look at what a channel says. A class, so that it costs a channel that nobody looks at one pointer.
private final class ChannelObserver {
    /// In monotonic milliseconds. Whoever looks says so again before.
    var until: Int64
    private(set) var events = Ring<TrafficEvent>(capacity: 50)
    private var number = 0

    /// How long a look lasts, in milliseconds.
    static let patience: Int64 = 5000

    init(until: Int64) {
        self.until = until
    }

    func note(
        _ event: String, at unix: Int64, receivers: Int, bytes: Int, _ excerpt: String, isRefused: Bool = false
    ) {
        number += 1
        events.append(
            TrafficEvent(
                number: number, at: unix, event: event, receivers: receivers, bytes: bytes, excerpt: excerpt,
                isRefused: isRefused))
    }
}

/// One event that was sent to members of a channel on one loop, or that a member wanted to be.
package struct TrafficEvent: Sendable {
    package let number: Int
    /// In milliseconds since 1970.
    package let at: Int64
    package let event: String
    package let receivers: Int
    /// Of the payload.
    package let bytes: Int
    /// Or why it was refused.
    package let excerpt: String
    package let isRefused: Bool
}

extension UserBroadcast {
    fileprivate var excerpt: String {
        encoding == .json ? FrameHead.excerpt(ofJSON: payload) : "\(payload.count) bytes"
    }
}

/// The last so many of something, oldest first.
package struct Ring<Element> {
    package let capacity: Int
    private var slots: [Element] = []
    /// Where the oldest one stands once the ring is full.
    private var start = 0

    /// - Parameter capacity: more than none. Room is taken as it fills.
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
