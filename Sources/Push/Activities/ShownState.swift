package import Hub

/// A state that goes to the app by socket.
package struct ShownState: Sendable, Equatable {
    /// The activity's id.
    package let id: String
    /// Nobody else's sockets may get it.
    package let user: String
    package let event: ActivityEvent
    /// Seconds since 1970, in one line with the timestamps of the pushes.
    package let timestamp: Int64
    package let version: Int
    /// The content-state, as JSON.
    package let state: [UInt8]
}
