import Wire

/// What a channel's logic wants done.
package enum ChannelAction {
    case send(ClientMessage)
    /// For these change sequences.
    case change(RowChange, [SubscriptionID])
    /// For all change sequences.
    case expired(reason: String)
    /// All change sequences end.
    case failChanges(RoostError)
    case broadcast(IncomingBroadcast)
    case presence
    case typing
    case occupancy(Occupancy)
    case tell(ChannelEvent)
    /// A frame as it came; nil payload for raw bytes.
    case message(ServerMessage)
    /// The answer to a call.
    case answer(CallID, RoostError?)
    /// The hub says that the token is no good.
    case tokenRefused
    /// It is over: all sequences end, with the error or without one.
    case over(RoostError?)
}

package typealias SubscriptionID = Int
package typealias CallID = Int
