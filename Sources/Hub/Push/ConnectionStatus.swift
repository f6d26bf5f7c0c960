/// How a user, or one of a user's devices, stands to the hub.
package enum Standing: Sendable, Equatable {
    /// A socket lives.
    case live
    /// The last socket is lost, and its grace window is open until then, in monotonic milliseconds.
    case inGrace(until: Int64)
    case away
}
