/// What a channel says while an operator looks at it.
final class ChannelTap {
    /// In monotonic milliseconds. Whoever looks says so again before.
    var until: Int64
    private(set) var events = Ring<ChannelEvent>(capacity: 50)
    private var number = 0

    /// How long a look lasts.
    static let patience: Int64 = 5000

    init(until: Int64) {
        self.until = until
    }

    func note(_ event: String, at unix: Int64, receivers: Int, bytes: Int, _ excerpt: String) {
        number += 1
        events.append(
            ChannelEvent(
                number: number, at: unix, event: event, receivers: receivers, bytes: bytes, excerpt: excerpt))
    }
}

/// One event that was sent to members of a channel on one loop.
package struct ChannelEvent: Sendable {
    package let number: Int
    /// In milliseconds since 1970.
    package let at: Int64
    package let event: String
    package let receivers: Int
    /// Of the payload.
    package let bytes: Int
    package let excerpt: String
}
