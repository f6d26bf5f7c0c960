import Synchronization

/// The connection's state, for those who may not wait for the engine.
final class StateMirror: Sendable {
    private let value = Mutex(ConnectionState.idle)

    var state: ConnectionState {
        get { value.withLock { $0 } }
        set { value.withLock { $0 = newValue } }
    }
}
