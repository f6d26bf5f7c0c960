/// What really happens to the socket, grace windows aside: for logs, and for whoever retries something.
public enum SocketEvent: Sendable, Equatable {
    case connecting
    case connected
    /// The reason is one sentence.
    case lost(reason: String)
    /// So long until the next attempt.
    case waiting(Duration)
}
