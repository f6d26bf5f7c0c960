/// What a frame is worth to a client that reads more slowly than its channels speak.
package enum FrameKind: Sendable, Equatable {
    /// Nothing makes up for it but itself.
    case message
    /// A row's change. Catch-up makes up for it, so the proof that the client has it is kept track of.
    case change
    /// A broadcast to a member that asked for history, which brings it again; so the proof is kept track of, too.
    case kept
    /// A step between two states of a channel: the state itself says the same at any time.
    case step(ChannelState)

    package var needsProof: Bool { self == .change || self == .kept }
}

/// What a member can be told as a whole.
package enum ChannelState: Sendable, Hashable {
    /// Who is present: `presence_state`.
    case presence(ChannelKey)
    /// Who types: `typing_state`.
    case typing(ChannelKey)
}
