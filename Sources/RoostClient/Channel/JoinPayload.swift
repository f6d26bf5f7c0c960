import Wire

/// The payload of `phx_join` (wire-protocol A4, `docs/recovery.md`, `docs/protocol.md`).
package struct JoinPayload {
    package let configuration: ChannelConfiguration
    package let presenceKey: String
    package let wantsPresence: Bool
    package let appState: AppState
    package let bindings: [ChangeBinding]
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
