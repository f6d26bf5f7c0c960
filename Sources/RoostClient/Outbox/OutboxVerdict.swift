/// What an error of a send means for the payload.
public enum OutboxVerdict: Sendable, Equatable {
    /// The same request may succeed later: no network, a server that is away or busy.
    case retry
    /// The same request cannot succeed. The reason is what the user is told.
    case reject(String)
}

/// What became of a payload that was put into an outbox.
public enum OutboxAdmission: Sendable, Equatable {
    case queued
    /// A payload with this `localID` is in the outbox, or left it as sent a moment ago. The first one counts.
    case duplicate
}
