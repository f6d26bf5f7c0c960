import Gateway
import Hub
import Wire

/// One hub's answer to a question for all hubs.
enum ServerPart: Sendable, Equatable {
    case channels(ChannelPage)
    case user(UserReport)
    case stats(HubCounts)
    /// The number of affected sockets or channels.
    case count(Int)
    /// There is no room to remember more users that may not join.
    case full

    /// A user's connections to one hub.
    struct UserReport: Sendable, Equatable {
        /// True also within the grace window, if the hub tracks users' status.
        var isOnline: Bool
        /// The number of all connections, listed or not.
        var count: Int
        var connections: [UserConnection]

        /// The most connections that a hub lists.
        static let most = 50
    }

    /// The size of one hub.
    struct HubCounts: Sendable, Equatable {
        var connections: Int
        /// The number of pairs of a socket and a channel that it has joined.
        var memberships: Int
    }

    // MARK: Between hubs

    /// - Parameter cost: the cost for this hub, in microseconds.
    func encoded(cost: Int) -> [UInt8] {
        JSONWriter.object { out in
            out.writeMember("cost", cost)
            switch self {
            case .channels(let page):
                out.writeMember("cut", page.isCut)
                out.writeMember("unlisted", page.unlisted)
                out.array("channels", page.channels) { out, channel in
                    out.object {
                        $0.addKey(of: channel.key)
                        $0.writeMember("connections", channel.connections)
                        $0.writeMember("present", channel.members)
                        $0.writeMember("typing", channel.typing)
                    }
                }
            case .user(let report):
                out.object("user") { out in
                    out.writeMember("online", report.isOnline)
                    out.writeMember("count", report.count)
                    out.array("connections", report.connections) { out, connection in
                        out.object {
                            $0.writeMember("id", connection.id)
                            $0.writeMember("seconds", connection.seconds)
                            if let state = connection.appState { $0.writeMember("state", state.rawValue) }
                            $0.array("channels", connection.channels) { out, key in
                                out.object { $0.addKey(of: key) }
                            }
                        }
                    }
                }
            case .stats(let counts):
                out.object("stats") {
                    $0.writeMember("connections", counts.connections)
                    $0.writeMember("memberships", counts.memberships)
                }
            case .count(let count): out.writeMember("count", count)
            case .full: out.writeMember("full", true)
            }
        }
    }

    /// Nil if the hub did not know the question.
    static func decoded(_ bytes: [UInt8]) -> (part: ServerPart, cost: Int)? {
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch { return nil }
        guard let part = ServerPart(json) else { return nil }
        return (part, json.nonNegativeInteger("cost"))
    }

    private init?(_ json: JSON) {
        if let channels = json["channels"] {
            var page = ChannelPage(isCut: json["cut"]?.bool ?? false, unlisted: json.nonNegativeInteger("unlisted"))
            for channel in channels.elements {
                guard let key = ChannelKey(channel) else { return nil }
                page.channels.append(
                    ChannelCount(
                        key: key, connections: channel.nonNegativeInteger("connections"),
                        members: channel.nonNegativeInteger("present"),
                        typing: channel.nonNegativeInteger("typing")))
            }
            self = .channels(page)
        } else if let user = json["user"] {
            let connections = user["connections"]?.elements.map { connection in
                UserConnection(
                    id: connection["id"]?.string ?? "", seconds: connection.nonNegativeInteger("seconds"),
                    appState: connection["state"]?.string.flatMap { ReportedAppState(rawValue: $0) },
                    channels: connection["channels"]?.elements.compactMap { ChannelKey($0) } ?? [])
            }
            self = .user(
                UserReport(
                    isOnline: user["online"]?.bool ?? false, count: user.nonNegativeInteger("count"),
                    connections: connections ?? []))
        } else if let stats = json["stats"] {
            self = .stats(
                HubCounts(
                    connections: stats.nonNegativeInteger("connections"),
                    memberships: stats.nonNegativeInteger("memberships")))
        } else if json["count"]?.int != nil {
            self = .count(json.nonNegativeInteger("count"))
        } else if json["full"]?.bool == true {
            self = .full
        } else {
            return nil
        }
    }
}

extension JSON {
    /// A number from another hub, bounded so that a sum cannot overflow; 0 if it is missing.
    fileprivate func nonNegativeInteger(_ name: String) -> Int { min(max(0, self[name]?.int ?? 0), 1 << 53) }
}
