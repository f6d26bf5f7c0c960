import Gateway
import HTTP
import Hub
import Wire

/// The merged answers of all hubs, from which the response to a backend is built.
struct ServerAnswer {
    struct HubPart {
        let hub: String
        let part: ServerPart
    }

    var parts: [HubPart] = []
    /// Hubs that did not answer: their data is missing, and their actions may not have been carried out.
    var incomplete: [String] = []

    func response(to question: ServerQuestion) -> HTTPResponse {
        switch question {
        case .channels(_, _, let limit): .served { self.writeChannels(limit, &$0) }
        case .channel(let key): .served { self.writeChannel(key, &$0) }
        case .user(let user): .served { self.writeUser(user, &$0) }
        case .stats: .served { self.writeStats(&$0) }
        case .disconnect(let user): .served { self.writeDeed("disconnected", user, nil, &$0) }
        case .refresh(let user): .served { self.writeDeed("refreshed", user, nil, &$0) }
        case .unsubscribe(let user, let key, _):
            parts.contains { $0.part == .full }
                ? .message(503, "Too many users are kept out of channels; try again later, or without seconds")
                    .retryingAfter(60)
                : .served { self.writeDeed("unsubscribed", user, key, &$0) }
        }
    }

    private func writeChannels(_ limit: Int, _ out: inout JSONWriter) {
        let page = ChannelPage.mergePages(pages, limit: limit)
        out.array("channels", page.channels) { out, channel in
            out.object {
                $0.addShownKey(channel.key)
                $0.addCounts(channel)
            }
        }
        out.addNextCursor(page.isCut ? page.channels.last?.key.cursor : nil)
        out.writeMember("unlisted", page.unlisted)
        out.writeMember("incomplete", incomplete)
    }

    private func writeChannel(_ key: ChannelKey, _ out: inout JSONWriter) {
        out.addShownKey(key)
        out.addCounts(pages.flatMap(\.channels).reduce(into: ChannelCount(key: key)) { $0.mergeCount($1) })
        out.writeMember("incomplete", incomplete)
    }

    private var pages: [ChannelPage] {
        parts.compactMap { if case .channels(let page) = $0.part { page } else { nil } }
    }

    private func writeUser(_ user: Name, _ out: inout JSONWriter) {
        let reports = parts.compactMap { part -> (hub: String, report: ServerPart.UserReport)? in
            if case .user(let report) = part.part { (part.hub, report) } else { nil }
        }
        let connections = reports.flatMap { hub, report in report.connections.map { (hub, $0) } }
        out.writeMember("user", user.text)
        out.writeMember("online", reports.contains { $0.report.isOnline || $0.report.count > 0 })
        out.writeMember("count", reports.reduce(0) { $0 + $1.report.count })
        out.array("connections", connections) { out, entry in
            let (hub, connection) = entry
            out.object {
                $0.writeMember("hub", hub)
                $0.writeMember("id", connection.id)
                $0.writeMember("seconds", connection.seconds)
                $0.writeKey("app_state")
                if let state = connection.appState { $0.writeValue(state.rawValue) } else { $0.writeNull() }
                $0.array("channels", connection.channels) { out, key in out.object { $0.addShownKey(key) } }
            }
        }
        out.writeMember("incomplete", incomplete)
    }

    private func writeStats(_ out: inout JSONWriter) {
        let hubs = parts.compactMap { part -> (hub: String, counts: ServerPart.HubCounts)? in
            if case .stats(let counts) = part.part { (part.hub, counts) } else { nil }
        }
        out.writeMember("connections", hubs.reduce(0) { $0 + $1.counts.connections })
        out.writeMember("memberships", hubs.reduce(0) { $0 + $1.counts.memberships })
        out.array("hubs", hubs.sorted { $0.hub < $1.hub }) { out, entry in
            out.object {
                $0.writeMember("hub", entry.hub)
                $0.writeMember("connections", entry.counts.connections)
                $0.writeMember("memberships", entry.counts.memberships)
            }
        }
        out.writeMember("incomplete", incomplete)
    }

    private func writeDeed(_ deed: String, _ user: Name, _ key: ChannelKey?, _ out: inout JSONWriter) {
        let counts = parts.compactMap { part -> (hub: String, count: Int)? in
            if case .count(let count) = part.part { (part.hub, count) } else { nil }
        }
        out.writeMember("user", user.text)
        if let key { out.addShownKey(key) }
        out.writeMember(deed, counts.reduce(0) { $0 + $1.count })
        out.object("hubs") { for (hub, count) in counts.sorted(by: { $0.hub < $1.hub }) { $0.writeMember(hub, count) } }
        out.writeMember("incomplete", incomplete)
    }
}

extension PresencePage {
    func response(for key: ChannelKey, incomplete: [String]) -> HTTPResponse {
        .served { out in
            out.addShownKey(key)
            out.array("members", members) { out, member in
                out.object {
                    $0.writeMember("key", member.key)
                    $0.array("metas", member.metas) { $0.writeValue(json: $1) }
                }
            }
            out.writeMember("count", count)
            out.writeMember("listed", listed)
            out.addNextCursor(end?.cursor)
            out.writeMember("incomplete", incomplete)
        }
    }
}

extension JSONWriter {
    mutating func addCounts(_ channel: ChannelCount) {
        writeMember("connections", channel.connections)
        writeMember("present", channel.members)
        writeMember("typing", channel.typing)
    }

    /// Writes the cursor of the next page; null if there is none.
    mutating func addNextCursor(_ cursor: String?) {
        writeKey("next")
        if let cursor { writeValue(cursor) } else { writeNull() }
    }
}

extension HTTPResponse {
    static func served(_ members: (inout JSONWriter) -> Void) -> HTTPResponse { .json(200, JSONWriter.object(members)) }

    func retryingAfter(_ seconds: Int) -> HTTPResponse {
        var response = self
        response.headers.append(("retry-after", String(seconds)))
        return response
    }
}
