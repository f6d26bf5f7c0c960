/// A broadcast that is kept for those who may come back for it.
struct KeptMessage: Sendable {
    let position: Int
    let broadcast: Broadcast
    /// When it was sent: milliseconds, monotonic and since 1970.
    let at: HubTime
    /// Who sent it and did not want it back; nil where nobody is to be spared.
    let sender: MemberID?
    /// The id of a row of `realtime.messages`, if it is one.
    let databaseID: String?

    /// What it takes in memory, about.
    var bytes: Int { MemberWrite.broadcast(broadcast).bytes + Self.overhead }

    private static let overhead = 128
}

extension Broadcast {
    /// The same without the frame it came in, which a slice would keep alive.
    var copied: Broadcast {
        guard case .broadcast(let copy) = MemberWrite.broadcast(self).copied else { return self }
        return copy
    }
}
