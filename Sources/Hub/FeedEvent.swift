/// What the change feed brings a loop, in the order it was committed.
package enum FeedEvent: Sendable {
    case change(ChangeDelivery)
    case broadcast(DatabaseBroadcast)
    /// The answer to a member's `Action.recover`, in order with the changes of the loop.
    case recovery(RecoveryID, RecoveryStep)
    /// All that came before is covered by this mark; marks only grow. See `RecoveryPoint.mark`.
    case boundary(Int)
    /// Until the next boundary some change waits for somebody, as a policy fails on it: who has all up to a later change
    /// may lack it.
    case withheld
    /// Changes that nobody was told of are gone.
    case gap
}

/// A message that SQL sent: a row of `realtime.messages` (wire-protocol B).
package struct DatabaseBroadcast: Sendable {
    package let key: ChannelKey
    /// The row's id, as the message's `meta` shows it.
    package let id: String
    package let broadcast: Broadcast

    package init(key: ChannelKey, id: String, broadcast: Broadcast) {
        self.key = key
        self.id = id
        self.broadcast = broadcast
    }
}
