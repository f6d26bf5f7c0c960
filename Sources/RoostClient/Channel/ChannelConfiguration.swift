import Wire

/// What the first user of a channel asks the hub for.
public struct ChannelConfiguration: Sendable {
    /// Whether this is the private channel of that name, to which the policies on `realtime.messages` let clients in.
    public var isPrivate = false
    /// Whether the hub answers each message: `send` then returns when the hub took it, and throws where it refuses it.
    /// Otherwise `send` returns when the message is handed to the socket.
    public var acknowledgesBroadcasts = true
    /// Whether one's own broadcasts come back.
    public var receivesOwnBroadcasts = false
    /// The key under which this client is present; nil stands for that of the client's configuration, which stays the
    /// same after a reconnect.
    public var presenceKey: String?
    /// What the hub tells this client of presence.
    public var presence = PresenceMode.automatic
    /// Unless nil, broadcasts that were missed come after a reconnect, as far as the hub keeps them.
    public var history: BroadcastHistory?
    /// Where the first join resumes: the cursor of the last change that the app has stored. Nil begins at the present.
    public var resumeFrom: String?
    /// In the channel of a stream: for how long the hub gathers what is appended before it tells this client, from zero to half
    /// a second; nil leaves it to the hub (40 ms).
    public var streamGathering: Duration?
    /// In the channel of a stream: how many bytes of it this client keeps at most. A longer one ends the channel.
    public var maximumStreamBytes = 64 << 20

    public init() {}
}

/// What the hub tells a channel's clients of presence.
public enum PresenceMode: Sendable, Equatable {
    /// The members, once `Channel.presence` is used; before that nothing.
    case automatic
    /// The members, from the first join on.
    case members
    /// How many they are and nothing else, for channels with very many members.
    case occupancy
}

/// How much the hub is to keep of a channel's broadcasts for clients that lose their connection. The hub's own limits
/// come first.
public struct BroadcastHistory: Sendable, Equatable {
    /// How many broadcasts; nil leaves it to the hub.
    public var limit: Int?
    /// How old they may be, in seconds; nil leaves it to the hub.
    public var seconds: Int?

    public init(limit: Int? = nil, seconds: Int? = nil) {
        self.limit = limit
        self.seconds = seconds
    }
}

/// The payload of `phx_join` (wire-protocol A4, `docs/recovery.md`, `docs/protocol.md`).
package struct JoinPayload {
    package let configuration: ChannelConfiguration
    package let presenceKey: String
    package let wantsPresence: Bool
    package let appState: AppState
    package let requests: [ChangeRequest]
    /// The entries of `config.rows`, JSON objects.
    package let rows: [[UInt8]]
    package let cursor: String?
    package let historyID: String?
    /// `config.stream`, a JSON object; nil where the channel is none of a stream.
    package let stream: [UInt8]?
    package let token: String

    /// The text of the payload, a JSON object.
    package var json: [UInt8] {
        var out = Array("{\"config\":{\"broadcast\":{\"self\":\(configuration.receivesOwnBroadcasts)".utf8)
        out += ",\"ack\":\(configuration.acknowledgesBroadcasts)".utf8
        if let history = configuration.history { out += ",\"history\":".utf8 + self.history(history) }
        out += "},\"presence\":{\"key\":".utf8
        JSONString.encode(presenceKey, into: &out)
        out += ",\"enabled\":\(wantsPresence)".utf8
        if configuration.presence == .occupancy { out += ",\"occupancy\":true".utf8 }
        out += "},\"postgres_changes\":[".utf8
        out += Array(requests.map(\.json).joined(separator: ",".utf8))
        out += "],\"private\":\(configuration.isPrivate),\"app_state\":\"\(appState.rawValue)\"".utf8
        if !requests.isEmpty {
            out += ",\"resume\":{".utf8
            if let cursor { out += "\"cursor\":".utf8 + JSONString.encode(cursor) }
            out.append(UInt8(ascii: "}"))
        }
        if !rows.isEmpty {
            out += ",\"rows\":[".utf8
            out += Array(rows.joined(separator: ",".utf8)) + [UInt8(ascii: "]")]
        }
        if let stream { out += ",\"stream\":".utf8 + stream }
        out += "},\"access_token\":".utf8
        JSONString.encode(token, into: &out)
        out.append(UInt8(ascii: "}"))
        return out
    }

    private func history(_ history: BroadcastHistory) -> [UInt8] {
        var parts: [[UInt8]] = []
        if let limit = history.limit { parts.append(Array("\"limit\":\(limit)".utf8)) }
        if let seconds = history.seconds { parts.append(Array("\"seconds\":\(seconds)".utf8)) }
        if let historyID { parts.append(Array("\"after\":".utf8) + JSONString.encode(historyID)) }
        return parts.isEmpty ? Array("true".utf8) : [0x7B] + parts.joined(separator: [0x2C]) + [0x7D]
    }
}
