/// From where a member is to be brought what it missed.
package enum RecoveryPoint: Sendable, Equatable {
    /// What the feed of this process handed on up to this mark (`FeedEvent.boundary`) has arrived; 0 is where it began.
    case mark(Int)
    /// A client says it itself: a cursor that came with a change, or with the reply to a join.
    case cursor(String)
    /// Where the hub's last process may have left its clients.
    case restart
}
