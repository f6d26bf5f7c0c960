/// Why rows have to be loaded again: something was missed that nobody can bring any more.
public enum ReloadReason: Sendable, Equatable {
    /// The hub cannot resume where this client was. One sentence of the hub's.
    case expired(reason: String)
    /// The consumer was too slow for the buffer, from which so many changes were dropped.
    case overflow(dropped: Int)
}
