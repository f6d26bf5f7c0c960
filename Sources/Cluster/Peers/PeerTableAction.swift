/// A finding of `PeerTable`; handled in order.
package enum PeerTableAction: Equatable, Sendable {
    /// A hub is alive: a new one, or one that was taken for dead.
    case joined(HubIdentity)
    /// A hub said good-bye. It has no members any more.
    case left(HubIdentity)
    /// A hub ended without saying good-bye. Its members are kept for their windows, and `LogReader.publisherEnded` is called.
    case died(HubBeat.Ended)
    /// Others heard a dead hub later than the first report of its end said: windows count from then.
    case diedLater(HubBeat.Ended)
    /// Another process holds the lease of this hub's name.
    case nameTaken(by: UInt64)
    /// This hub's copy of the other hub's members differs from the original.
    case askSnapshot(HubIdentity)
}
