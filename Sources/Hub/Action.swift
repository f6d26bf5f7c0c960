package import Streams
package import Wire

/// What the hub wants done. It decides; the gateway executes, in order.
package enum Action: Sendable {
    case send(Frame, to: Slot, FrameKind = .message)
    /// One frame for all of `audience`, save the sender who did not ask for an echo.
    case fanOut(Frame, to: [Slot], except: Slot?, FrameKind = .message)
    case close(Slot, CloseCode, reason: StaticString)
    /// What a reader of events asked for is known: its answer begins with this frame, before all that was sent to it.
    case begin(Slot, Frame)
    /// It gets nothing: the answer is why.
    case refuse(Slot, Refusal)
    /// For the hubs of the other loops, whose subscribers are part of the same channels.
    case relay(Relay)
    /// The change feed is to watch these bindings for a group of subscribers.
    case subscribe(ChangeGroupID, ChangeSubscription)
    case unsubscribe(ChangeGroupID)
    /// Somebody with these claims is in the group from here on, the first such; the opposite when the last has left.
    case admit(ChangeGroupID, Claims)
    case withdraw(ChangeGroupID, Claims)
    /// What a member missed is to be read; the answer comes as `FeedEvent.recovery`.
    case recover(RecoveryID, RecoveryQuestion)
    case abandon(RecoveryID)
    /// Sockets are to be asked at once whether they live, by `Hub.acknowledgementPing`.
    case ping([SocketPlace])
    /// Something is to be done to a stream; where a number is given, the answer comes by `streamAnswered` with it.
    case stream(Int?, StreamName, StreamRequest)
    /// A broadcast is to be kept as a row; where a number is given, the answer comes by `stored` with it.
    case store(Int?, PersistedMessage)
    /// The policies of a private channel are to be asked; the answer comes by `authorization`.
    case authorize(AuthorizationID, AuthorizationQuestion)
}

/// What a frame is worth to a client that reads more slowly than its channels speak.
package enum FrameKind: Sendable, Equatable {
    /// Nothing makes up for it but itself.
    case message
    /// A row's change. Catch-up makes up for it, so the hub keeps track of whether the client has it.
    case change
    /// A broadcast to a member that asked for history, which brings it again; so the hub keeps track of it, too.
    case kept
    /// A step between two states of a channel: the state itself says the same at any time.
    case step(ChannelState)

    package var needsAcknowledgement: Bool { self == .change || self == .kept }
}

/// What a member can be told as a whole.
package enum ChannelState: Sendable, Hashable {
    /// Who is present: `presence_state`.
    case presence(ChannelKey)
    /// Who types: `typing_state`.
    case typing(ChannelKey)
}
