/// What a join asks for.
public struct ChannelConfiguration: Sendable {
    /// The private channel of that name: the policies on `realtime.messages` decide.
    public var isPrivate = false
    /// `send` returns when the hub took the message, and throws where it refuses it. False: when it is handed to the
    /// socket.
    public var acknowledgesBroadcasts = true
    /// One's own broadcasts come back.
    public var receivesOwnBroadcasts = false
    /// Under which key this client is present; nil is the client's own, so that it is the same after a reconnect.
    public var presenceKey: String?
    /// What is told of presence.
    public var presence = PresenceMode.automatic
    /// Broadcasts that were missed come after a reconnect, as far as the hub keeps them.
    public var history: BroadcastHistory?
    /// Where the first join resumes: the cursor of the last change that the app has stored. Nil: at the present.
    public var resumeFrom: String?

    public init() {}
}

/// What a channel is told of presence.
public enum PresenceMode: Sendable, Equatable {
    /// The members, where `Channel.presence` is used.
    case automatic
    /// The members.
    case members
    /// Numbers alone, for channels with very many members.
    case occupancy
}

/// How much the hub is to keep of a channel's broadcasts for those who drop off; what it allows counts.
public struct BroadcastHistory: Sendable, Equatable {
    public var limit: Int?
    public var seconds: Int?

    public init(limit: Int? = nil, seconds: Int? = nil) {
        self.limit = limit
        self.seconds = seconds
    }
}
