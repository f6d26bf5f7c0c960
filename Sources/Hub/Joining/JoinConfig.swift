package import Wire

/// The payload of `phx_join` (wire-protocol A4). Values that are missing or of the wrong type take their defaults, as
/// in the original: an odd config never keeps a client out.
package struct JoinConfig {
    var echoesToSelf = false
    var acknowledges = false
    var wantsReplicationReady = false
    /// As sent; its form is checked with the join.
    var replay: JSON?
    var history: HistoryRequest?
    /// `resume.cursor`: the client's position.
    var resumeCursor: String?
    /// A `resume` is present: the reply must name a position.
    var wantsCursor = false
    var presenceKey: String?
    var wantsPresence = false
    /// Asks for counts instead of a list.
    var wantsOccupancy = false
    var appState: ReportedAppState?
    var isPrivate = false
    /// `stream`, for the channel of a stream.
    var stream = StreamRequestOfJoin(nil)
    var changes: [JSON] = []
    /// Milliseconds that the reply may wait for the changes.
    var changesWait: Int64?
    var hasTooManyChanges = false
    /// The requested initial rows, one entry for each query.
    var rows: [JSON] = []
    /// `user_token` before `access_token`; keys that only name a project (`sb_…`) are not tokens.
    var token: String?

    /// The index of the channel in a reader's request, and the client's position in it.
    var readerIndex: Int?
    var position: EventPosition?
    /// The payload had no config at all.
    var isLegacy = false

    private static let longestCursor = 65_536

    package init(_ payload: JSON, topic: String, limits: HubLimits) {
        if let config = payload["config"] {
            if let broadcast = config["broadcast"] {
                echoesToSelf = Self.flag(broadcast["self"])
                acknowledges = Self.flag(broadcast["ack"])
                wantsReplicationReady = Self.flag(broadcast["replication_ready"])
                if let json = broadcast["replay"], !json.isNull { replay = json }
                history = HistoryRequest(broadcast["history"])
            }
            if let presence = config["presence"] {
                wantsOccupancy = Self.flag(presence["occupancy"])
                // Some clients set `enabled` by themselves; a client that asks for counts wants no lists.
                wantsPresence = Self.isEnabled(presence) && !wantsOccupancy
                if let key = presence["key"], !key.isNull {
                    presenceKey = key.string ?? key.description
                    if presenceKey == "" { presenceKey = nil }
                }
            }
            if let resume = config["resume"], resume.kind == .object {
                wantsCursor = true
                // The cursor is remembered, so its length is limited; no hub gives out one that long.
                resumeCursor = (resume["cursor"]?.string).map { $0.utf8.count <= Self.longestCursor ? $0 : "" }
            }
            isPrivate = Self.flag(config["private"])
            if ChannelStream.isOne(topic) { stream = StreamRequestOfJoin(config["stream"]) }
            appState = ReportedAppState(config["app_state"])
            let entries = config["postgres_changes"]?.elements(upTo: limits.filtersPerChannel + 1) ?? []
            hasTooManyChanges = entries.count > limits.filtersPerChannel
            changes = entries.filter { !$0.isNull }
            changesWait = ChangesWait.milliseconds(config["postgres_changes_options"])
            // Clients that select which parts of a config they send pass `broadcast` on unchanged.
            let wanted = config["rows"] ?? config["broadcast"]?["rows"]
            rows = wanted?.elements(upTo: FirstRows.mostEntries + 1) ?? []
        }
        if payload["config"] == nil {
            isLegacy = true
            changes = [Self.binding(ofTopic: topic)]
        }
        token = Self.token(payload["user_token"]) ?? Self.token(payload["access_token"])
    }

    /// Parses `realtime:schema[:table[:filter]]`, the form used before configs existed.
    private static func binding(ofTopic topic: String) -> JSON {
        let parts = ChannelKey(topic: topic, isPrivate: false).name.split(
            separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        let binding = JSONWriter.object {
            $0.writeMember("event", "*")
            for (name, part) in zip(["schema", "table", "filter"], parts) { $0.writeMember(name, String(part)) }
        }
        return JSON(trusted: binding[...])
    }

    /// Clients from before July 2025 do not know `enabled`: they send `presence` in every join and count on it. Later
    /// clients always send `enabled`.
    private static func isEnabled(_ presence: JSON) -> Bool {
        guard presence.kind == .object else { return false }
        guard let enabled = presence["enabled"], !enabled.isNull else { return true }
        return flag(enabled)
    }

    /// Booleans may come as strings.
    static func flag(_ json: JSON?) -> Bool {
        json?.bool ?? (json?.string?.lowercased() == "true")
    }

    static func token(_ json: JSON?) -> String? {
        guard let text = json?.string, !text.isEmpty, !text.hasPrefix("sb_") else { return nil }
        return text
    }
}
