package import Hub
package import Matching

/// One thing that a committed transaction left for the hub.
package enum FeedEntry: Sendable {
    case change(RowChange)
    /// A row of `realtime.messages`.
    case broadcast(DatabaseBroadcast)
}
