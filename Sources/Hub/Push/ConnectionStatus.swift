/// Whether a user, or one of a user's devices, is connected to this hub.
package enum ConnectionStatus: Sendable, Equatable {
    /// At least one socket is alive.
    case live
    /// The last socket is lost, and its grace window is open until then, in monotonic milliseconds.
    case inGrace(until: Int64)
    /// There is no socket, and no grace window is open.
    case away
}
