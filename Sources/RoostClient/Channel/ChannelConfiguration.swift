import Wire

/// The settings of a channel, chosen by its first user.
public struct ChannelConfiguration: Sendable {
    /// Whether this is the private channel of that name, which clients join by the policies on `realtime.messages`.
    public var isPrivate = false
    /// Whether the hub acknowledges each message: `send` then returns once the hub has accepted it, and throws if it
    /// refuses. Otherwise `send` returns once the message is handed to the socket.
    public var acknowledgesBroadcasts = true
    /// Whether the client receives its own broadcasts.
    public var receivesOwnBroadcasts = false
    /// The key under which this client is present; nil for the key of the client's configuration, which stays the same
    /// after a reconnect.
    public var presenceKey: String?
    /// The presence events that the hub sends to this client.
    public var presence = PresenceMode.automatic
    /// If not nil, missed broadcasts arrive after a reconnect, as far as the hub keeps them.
    public var history: BroadcastHistory?
    /// The position at which the first join resumes: the cursor of the last change that the app has stored. Nil starts
    /// at the present.
    public var resumeFrom: String?
    /// For the channel of a stream: how long the hub gathers appended data before it sends it to this client, from zero
    /// to half a second; nil for the hub's default (40 ms).
    public var streamGathering: Duration?
    /// For the channel of a stream: the most bytes of it that this client keeps. A longer stream ends the channel.
    public var maximumStreamBytes = 64 << 20

    public init() {}
}

/// The presence events that the hub sends to a channel's clients.
public enum PresenceMode: Sendable, Equatable {
    /// The members, once `Channel.presence` is used; before that none.
    case automatic
    /// The members, from the first join on.
    case members
    /// Only the number of members, for channels with very many.
    case occupancy
}

/// The broadcasts of a channel that the hub keeps for clients that lose their connection, within the hub's own
/// limits.
public struct BroadcastHistory: Sendable, Equatable {
    /// The number of broadcasts; nil for the hub's default.
    public var limit: Int?
    /// Their greatest age in seconds; nil for the hub's default.
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
    /// `config.stream`, a JSON object; nil unless the channel is a stream's.
    package let stream: [UInt8]?
    package let token: String

    /// The payload as the text of a JSON object.
    package var json: [UInt8] {
        var out = Array("{\"config\":{\"broadcast\":{\"self\":\(configuration.receivesOwnBroadcasts)".utf8)
        out += ",\"ack\":\(configuration.acknowledgesBroadcasts)".utf8
        if let history = configuration.history { out += ",\"history\":".utf8 + self.historyObject(history) }
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

    private func historyObject(_ history: BroadcastHistory) -> [UInt8] {
        var parts: [[UInt8]] = []
        if let limit = history.limit { parts.append(Array("\"limit\":\(limit)".utf8)) }
        if let seconds = history.seconds { parts.append(Array("\"seconds\":\(seconds)".utf8)) }
        if let historyID { parts.append(Array("\"after\":".utf8) + JSONString.encode(historyID)) }
        return parts.isEmpty ? Array("true".utf8) : [0x7B] + parts.joined(separator: [0x2C]) + [0x7D]
    }
}
