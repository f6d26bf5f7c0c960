package import Hub
package import Wire

/// One connection, for as long as the process lives: its slot falls to another one when it is gone.
package struct ConnectionID: Hashable, Sendable, LosslessStringConvertible {
    package let loop: Int
    package let slot: Slot
    /// How many connections the loop had taken when it took this one.
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

/// One connection as a line of a list.
package struct SocketView: Sendable {
    package let id: ConnectionID
    package let address: String
    package let user: Name?
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
