package import Hub

/// One connection as a line of a list.
package struct SocketView: Sendable {
    package let id: ConnectionID
    package let address: String
    package let user: String?
    package let channels: Int
    /// How long it has been open.
    package let seconds: Int
    /// What waits for it, and whether it reads too slowly: spared presence, or not waited for any more.
    package let pendingBytes: Int
    package let isBehind: Bool
    package let isWrittenOff: Bool
    package let isClosing: Bool
}

/// All that is told of one connection.
package struct ConnectionReport: Sendable {
    package let socket: SocketView
    package let connection: ConnectionView
    /// Seconds.
    package let silence: Int
    /// From when somebody began to look.
    package let trace: [TraceEntry]
}

/// A channel with the ids of its members' connections, in their order.
package struct ChannelReport: Sendable {
    package let loop: Int
    package let view: ChannelView
    package let members: [ConnectionID]
}
