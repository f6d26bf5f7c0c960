public import Foundation

/// What happens to the payloads of an outbox. Events tell of a payload by its `localID`.
public enum OutboxEvent: Sendable, Equatable {
    /// It is stored and will be sent.
    case queued(UUID)
    /// The server has it. It has left the outbox.
    case sent(UUID)
    /// The server will not have it, for this reason. It stays, is not sent again, and holds nobody up.
    case failed(UUID, reason: String)
    /// It could not be sent and is tried again, after this time or sooner.
    case willRetry(UUID, after: Duration, reason: String)
    /// The storage did not take note of something; it is told again with the next change. If the app ends before,
    /// a payload that was sent is sent once more, and the server knows it by its `localID`.
    case storageFailed(reason: String)
    /// The reader fell behind by more events than are kept for it. The sequence ends here: ask for `items` and for a new
    /// sequence.
    case overflowed
}
