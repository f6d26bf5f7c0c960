package import Hub

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
