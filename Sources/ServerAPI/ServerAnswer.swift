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
        case .channels(_, _, let limit): .served { self.channels(limit, &$0) }
        case .channel(let key): .served { self.channel(key, &$0) }
        case .user(let user): .served { self.user(user, &$0) }
        case .stats: .served { self.stats(&$0) }
        case .disconnect(let user): .served { self.deed("disconnected", user, nil, &$0) }
        case .refresh(let user): .served { self.deed("refreshed", user, nil, &$0) }
        case .unsubscribe(let user, let key, _):
            parts.contains { $0.part == .full }
                ? .message(503, "Too many users are kept out of channels; try again later, or without seconds")
                    .retryingAfter(60)
                : .served { self.deed("unsubscribed", user, key, &$0) }
        }
    }

    private func channels(_ limit: Int, _ out: inout JSONWriter) {
        let page = ChannelPage.joined(pages, limit: limit)
        out.array("channels", page.channels) { out, channel in
            out.object {
                $0.shown(channel.key)
                $0.counts(channel)
            }
        }
        out.next(page.isCut ? page.channels.last?.key.cursor : nil)
        out.member("unlisted", page.unlisted)
        out.member("incomplete", incomplete)
    }

    private func channel(_ key: ChannelKey, _ out: inout JSONWriter) {
        out.shown(key)
        out.counts(pages.flatMap(\.channels).reduce(into: ChannelCount(key: key)) { $0.add($1) })
        out.member("incomplete", incomplete)
    }

    private var pages: [ChannelPage] {
        parts.compactMap { if case .channels(let page) = $0.part { page } else { nil } }
    }

    private func user(_ user: Name, _ out: inout JSONWriter) {
        let reports = parts.compactMap { part -> (hub: String, report: ServerPart.UserReport)? in
            if case .user(let report) = part.part { (part.hub, report) } else { nil }
        }
        let connections = reports.flatMap { hub, report in report.connections.map { (hub, $0) } }
        out.member("user", user.text)
        out.member("online", reports.contains { $0.report.isOnline || $0.report.count > 0 })
        out.member("count", reports.reduce(0) { $0 + $1.report.count })
        out.array("connections", connections) { out, entry in
            let (hub, connection) = entry
            out.object {
                $0.member("hub", hub)
                $0.member("id", connection.id)
                $0.member("seconds", connection.seconds)
                $0.key("app_state")
                if let state = connection.appState { $0.value(state.rawValue) } else { $0.null() }
                $0.array("channels", connection.channels) { out, key in out.object { $0.shown(key) } }
            }
        }
        out.member("incomplete", incomplete)
    }

    private func stats(_ out: inout JSONWriter) {
        let hubs = parts.compactMap { part -> (hub: String, counts: ServerPart.HubCounts)? in
            if case .stats(let counts) = part.part { (part.hub, counts) } else { nil }
        }
        out.member("connections", hubs.reduce(0) { $0 + $1.counts.connections })
        out.member("memberships", hubs.reduce(0) { $0 + $1.counts.memberships })
        out.array("hubs", hubs.sorted { $0.hub < $1.hub }) { out, entry in
            out.object {
                $0.member("hub", entry.hub)
                $0.member("connections", entry.counts.connections)
                $0.member("memberships", entry.counts.memberships)
            }
        }
        out.member("incomplete", incomplete)
    }

    private func deed(_ deed: String, _ user: Name, _ key: ChannelKey?, _ out: inout JSONWriter) {
        let counts = parts.compactMap { part -> (hub: String, count: Int)? in
            if case .count(let count) = part.part { (part.hub, count) } else { nil }
        }
        out.member("user", user.text)
        if let key { out.shown(key) }
        out.member(deed, counts.reduce(0) { $0 + $1.count })
        out.object("hubs") { for (hub, count) in counts.sorted(by: { $0.hub < $1.hub }) { $0.member(hub, count) } }
        out.member("incomplete", incomplete)
    }
}

extension PresencePage {
    func response(for key: ChannelKey, incomplete: [String]) -> HTTPResponse {
        .served { out in
            out.shown(key)
            out.array("members", members) { out, member in
                out.object {
                    $0.member("key", member.key)
                    $0.array("metas", member.metas) { $0.value(json: $1) }
                }
            }
            out.member("count", count)
            out.member("listed", listed)
            out.next(end?.cursor)
            out.member("incomplete", incomplete)
        }
    }
}

extension JSONWriter {
    mutating func counts(_ channel: ChannelCount) {
        member("connections", channel.connections)
        member("present", channel.members)
        member("typing", channel.typing)
    }

    /// Writes the cursor of the next page; null if there is none.
    mutating func next(_ cursor: String?) {
        key("next")
        if let cursor { value(cursor) } else { null() }
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
