/// What a UI shows of the connection. A loss that is shorter than the window of the app's state is not in it.
public enum ConnectionState: Sendable, Equatable {
    /// Nobody asked for a connection, or `disconnect()` ended it.
    case idle
    /// The first connection is on its way, for no longer than the window.
    case connecting
    /// There is a connection, or there was one within the window.
    case connected
    /// There has been none for longer than the window. The client goes on trying. The reason is one sentence.
    case disconnected(reason: String)
    /// The hub closed the connection with a code of 4000 or above, which means that it wants nobody back. `connect()`
    /// tries again.
    case ended(reason: String)
}
