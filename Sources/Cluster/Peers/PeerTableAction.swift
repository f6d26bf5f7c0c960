/// What a `PeerTable` has found out, in this order.
package enum PeerTableAction: Equatable, Sendable {
    /// A hub is there: a new one, or one that was taken for dead.
    case joined(HubIdentity)
    /// A hub said good-bye. It has no members any more.
    case left(HubIdentity)
    /// A hub ended without a word. Its members are held for their windows, and `LogReader.publisherEnded` is told.
    case died(HubBeat.Ended)
    /// A hub that is known to have died was heard by others for longer than by whoever told of its end first: windows count from then.
    case diedLater(HubBeat.Ended)
    /// Another process holds the lease of this hub's name.
    case nameTaken(by: UInt64)
    /// This hub's copy of that hub's members differs from the original.
    case askSnapshot(HubIdentity)
}
