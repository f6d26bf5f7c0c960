package import Hub
package import Wire

/// The identity of one connection for the lifetime of the process; its slot is reused afterwards.
package struct ConnectionID: Hashable, Sendable, LosslessStringConvertible {
    package let loop: Int
    package let slot: Slot
    /// The number of connections that the loop had accepted, up to this one.
    package let serial: Int

    package init(loop: Int, slot: Slot, serial: Int) {
        self.loop = loop
        self.slot = slot
        self.serial = serial
    }

    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let loop = Int(parts[0]), let slot = Slot(parts[1]), let serial = Int(parts[2]) else {
            return nil
        }
        self.init(loop: loop, slot: slot, serial: serial)
    }

    package var description: String { "\(loop)-\(slot)-\(serial)" }
}

/// One connection, as a line of a list.
package struct SocketView: Sendable {
    package let id: ConnectionID
    package let address: String
    package let user: Name?
    package let channels: Int
    /// The connection's age.
    package let seconds: Int
    /// Bytes waiting for the socket, and whether it reads too slowly: spared presence, or no longer waited for.
    package let pendingBytes: Int
    package let isBehind: Bool
    package let isWrittenOff: Bool
    package let isClosing: Bool
}

/// Everything reported about one connection.
package struct ConnectionReport: Sendable {
    package let socket: SocketView
    package let connection: ConnectionView
    /// Seconds.
    package let silence: Int
    /// Begins when an operator started to look.
    package let trace: [TraceEntry]
}

/// A channel with the IDs of its members' connections, in the same order.
package struct ChannelReport: Sendable {
    package let loop: Int
    package let view: ChannelView
    package let members: [ConnectionID]
}
