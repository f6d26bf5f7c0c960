package import Wire

/// The payload of `phx_join` (wire-protocol A4). What is missing or of the wrong type takes its default, as in the
/// original: an odd config never keeps a client out.
package struct JoinConfig {
    var echoesToSelf = false
    var acknowledges = false
    var wantsReplicationReady = false
    /// As sent; whether it is one is checked with the join.
    var replay: JSON?
    var history: HistoryRequest?
    /// `resume.cursor`: where the client was.
    var resumeCursor: String?
    /// There is a `resume`: the reply is to say where the client is.
    var wantsCursor = false
    var presenceKey: String?
    var wantsPresence = false
    /// Counts instead of a list.
    var wantsOccupancy = false
    var appState: ReportedAppState?
    var isPrivate = false
    /// `stream`, for the channel of one.
    var stream = StreamRequestOfJoin(nil)
    var changes: [JSON] = []
    /// Milliseconds for which the reply may wait for them.
    var changesWait: Int64?
    var hasTooManyChanges = false
    /// The rows that it is to begin with, for each of these entries.
    var rows: [JSON] = []
    /// `user_token` before `access_token`; keys that only name a project (`sb_…`) are no tokens.
    var token: String?

    /// Which of the channels of a reader of events it is, and where its client says that it is there.
    var readerIndex: Int?
    var position: EventPosition?
    /// There was no config at all.
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
                // Some clients set `enabled` by themselves; who asks for counts wants no lists.
                wantsPresence = Self.isEnabled(presence) && !wantsOccupancy
                if let key = presence["key"], !key.isNull {
                    presenceKey = key.string ?? key.description
                    if presenceKey == "" { presenceKey = nil }
                }
            }
            if let resume = config["resume"], resume.kind == .object {
                wantsCursor = true
                // It is remembered; one that long is none that a hub gave out.
                resumeCursor = (resume["cursor"]?.string).map { $0.utf8.count <= Self.longestCursor ? $0 : "" }
            }
            isPrivate = Self.flag(config["private"])
            if ChannelStream.isOne(topic) { stream = StreamRequestOfJoin(config["stream"]) }
            appState = ReportedAppState(config["app_state"])
            let entries = config["postgres_changes"]?.elements(upTo: limits.filtersPerChannel + 1) ?? []
            hasTooManyChanges = entries.count > limits.filtersPerChannel
            changes = entries.filter { !$0.isNull }
            changesWait = ChangesWait.milliseconds(config["postgres_changes_options"])
            // Clients that choose what they send of a config pass `broadcast` on as it is.
            let wanted = config["rows"] ?? config["broadcast"]?["rows"]
            rows = wanted?.elements(upTo: FirstRows.mostEntries + 1) ?? []
        }
        if payload["config"] == nil {
            isLegacy = true
            changes = [Self.binding(ofTopic: topic)]
        }
        token = Self.token(payload["user_token"]) ?? Self.token(payload["access_token"])
    }

    /// `realtime:schema[:table[:filter]]`, the way to say it before there were configs.
    private static func binding(ofTopic topic: String) -> JSON {
        let parts = ChannelKey(topic: topic, isPrivate: false).name.split(
            separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        let binding = JSONWriter.object {
            $0.member("event", "*")
            for (name, part) in zip(["schema", "table", "filter"], parts) { $0.member(name, String(part)) }
        }
        return JSON(trusted: binding[...])
    }

    /// Clients from before July 2025 know no `enabled`: they send `presence` in every join, and count on it. Those since
    /// then always send it.
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
