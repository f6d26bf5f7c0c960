package import Streams
package import Wire

/// An effect that the hub wants. The hub decides; the gateway executes, in order.
package enum Action: Sendable {
    case send(Frame, to: Slot, FrameKind = .message)
    /// Sends one frame to all of `audience`, except for a sender that wants no echo.
    case fanOut(Frame, to: [Slot], except: Slot?, FrameKind = .message)
    case close(Slot, CloseCode, reason: StaticString)
    /// Begins a reader's response with this frame, before everything sent to the reader, because its outcome is known.
    case begin(Slot, Frame)
    /// Refuses a reader: the response gives the reason, and nothing else.
    case refuse(Slot, Refusal)
    /// For the hubs of the other loops, whose subscribers are part of the same channels.
    case relay(Relay)
    /// Has the change feed watch these bindings for a group of subscribers.
    case subscribe(ChangeGroupID, ChangeSubscription)
    case unsubscribe(ChangeGroupID)
    /// Announces the group's first subscriber with these claims; `withdraw` follows when the last one has left.
    case admit(ChangeGroupID, Claims)
    case withdraw(ChangeGroupID, Claims)
    /// Asks for a member's missed changes; the answer comes as `FeedEvent.recovery`.
    case recover(RecoveryID, RecoveryQuestion)
    case abandon(RecoveryID)
    /// Asks sockets for a sign of life at once, by `Hub.acknowledgementPing`.
    case ping([SocketPlace])
    /// Sends a request to a stream; with a number, the answer comes by `streamAnswered`.
    case stream(Int?, StreamName, StreamRequest)
    /// Stores a broadcast as a row; with a number, the answer comes by `storeAnswered`.
    case store(Int?, PersistedMessage)
    /// Asks the policies of a private channel; the answer comes by `receiveAuthorization`.
    case authorize(AuthorizationID, AuthorizationQuestion)
}

/// The value of a frame to a client that reads more slowly than its channels send.
package enum FrameKind: Sendable, Equatable {
    /// Nothing makes up for a lost one.
    case message
    /// A row's change. Catch-up makes up for a lost one, so the hub tracks whether the client has it.
    case change
    /// A broadcast to a member with history, which makes up for a lost one; tracked likewise.
    case kept
    /// A step between two states of a channel: the state itself can replace it at any time.
    case step(ChannelState)

    package var needsAcknowledgement: Bool { self == .change || self == .kept }
}

/// A state of a channel that can be sent to a member as a whole.
package enum ChannelState: Sendable, Hashable {
    /// The presence list: `presence_state`.
    case presence(ChannelKey)
    /// The users typing: `typing_state`.
    case typing(ChannelKey)
}
