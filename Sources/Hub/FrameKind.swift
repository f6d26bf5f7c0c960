/// What a frame is worth to a client that reads more slowly than its channels speak.
package enum FrameKind: Sendable, Equatable {
    /// Nothing makes up for it but itself.
    case message
    /// A row's change. Catch-up makes up for it, so the proof that the client has it is kept track of.
    case change
    /// A broadcast to a member that asked for history, which brings it again; so the proof is kept track of, too.
    case kept
    /// Who came and went in the channel: a `presence_state` says the same at any time.
    case presence(ChannelKey)

    package var needsProof: Bool { self == .change || self == .kept }
}
