import DequeModule

/// Notifications that go out one after the other.
struct Lane {
    var waiting: Deque<SendQueue.Ticket> = []
    /// The one that is on its way.
    var flying: SendQueue.Ticket?
    /// Nothing before that, in monotonic milliseconds.
    var notBefore: Int64?

    var isEmpty: Bool { waiting.isEmpty && flying == nil }
    var isReady: Bool { !waiting.isEmpty && flying == nil && notBefore == nil }
}
