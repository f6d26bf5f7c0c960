import Wire

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

/// The payload of `phx_join` (wire-protocol A4, `docs/recovery.md`, `docs/protocol.md`).
package struct JoinPayload {
    package let configuration: ChannelConfiguration
    package let presenceKey: String
    package let wantsPresence: Bool
    package let appState: AppState
    package let bindings: [ChangeRequest]
    package let cursor: String?
    package let historyID: String?
    package let token: String

    package var json: [UInt8] {
        var out = Array("{\"config\":{\"broadcast\":{\"self\":\(configuration.receivesOwnBroadcasts)".utf8)
        out += ",\"ack\":\(configuration.acknowledgesBroadcasts)".utf8
        if let history = configuration.history { out += ",\"history\":".utf8 + self.history(history) }
        out += "},\"presence\":{\"key\":".utf8
        JSONString.encode(presenceKey, into: &out)
        out += ",\"enabled\":\(wantsPresence)".utf8
        if configuration.presence == .occupancy { out += ",\"occupancy\":true".utf8 }
        out += "},\"postgres_changes\":[".utf8
        out += Array(bindings.map(\.json).joined(separator: ",".utf8))
        out += "],\"private\":\(configuration.isPrivate),\"app_state\":\"\(appState.rawValue)\"".utf8
        if !bindings.isEmpty {
            out += ",\"resume\":{".utf8
            if let cursor { out += "\"cursor\":".utf8 + JSONString.encode(cursor) }
            out.append(UInt8(ascii: "}"))
        }
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

/// One entry of `config.postgres_changes`.
package struct ChangeRequest: Equatable, Sendable {
    package let schema: String
    package let table: String
    package let kind: ChangeKind?
    package let filter: String?

    package init(schema: String, table: String, kind: ChangeKind?, filter: String?) {
        self.schema = schema
        self.table = table
        self.kind = kind
        self.filter = filter
    }

    /// The text of the entry.
    package var json: [UInt8] {
        var out = Array("{\"event\":\"".utf8)
        out += (kind?.rawValue ?? "*").utf8
        out += "\",\"schema\":".utf8
        JSONString.encode(schema, into: &out)
        out += ",\"table\":".utf8
        JSONString.encode(table, into: &out)
        if let filter {
            out += ",\"filter\":".utf8
            JSONString.encode(filter, into: &out)
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}
