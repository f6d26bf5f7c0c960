import Gateway
import Hub
import Wire

/// What one hub answers to a question of all.
enum ServerPart: Sendable, Equatable {
    case channels(ChannelPage)
    case user(UserReport)
    case stats(HubCounts)
    /// How many sockets or channels were concerned.
    case count(Int)
    /// There is no room to remember who may not join.
    case full

    /// Where a user is on one hub.
    struct UserReport: Sendable, Equatable {
        /// Also in a grace window, where the hub keeps those.
        var isOnline: Bool
        /// Of all connections, not only of those that are listed.
        var count: Int
        var connections: [UserConnection]

        /// Connections of one hub that are listed.
        static let most = 50
    }

    /// What one hub has.
    struct HubCounts: Sendable, Equatable {
        var connections: Int
        /// Sockets in channels.
        var memberships: Int
    }

    // MARK: Between hubs

    /// - Parameter cost: what it cost this hub, in microseconds.
    func encoded(cost: Int) -> [UInt8] {
        JSONWriter.object { out in
            out.member("cost", cost)
            switch self {
            case .channels(let page):
                out.member("cut", page.isCut)
                out.member("unlisted", page.unlisted)
                out.array("channels", page.channels) { out, channel in
                    out.object {
                        $0.members(of: channel.key)
                        $0.member("connections", channel.connections)
                        $0.member("present", channel.members)
                        $0.member("typing", channel.typing)
                    }
                }
            case .user(let report):
                out.object("user") { out in
                    out.member("online", report.isOnline)
                    out.member("count", report.count)
                    out.array("connections", report.connections) { out, connection in
                        out.object {
                            $0.member("id", connection.id)
                            $0.member("seconds", connection.seconds)
                            if let state = connection.appState { $0.member("state", state.rawValue) }
                            $0.array("channels", connection.channels) { out, key in
                                out.object { $0.members(of: key) }
                            }
                        }
                    }
                }
            case .stats(let counts):
                out.object("stats") {
                    $0.member("connections", counts.connections)
                    $0.member("memberships", counts.memberships)
                }
            case .count(let count): out.member("count", count)
            case .full: out.member("full", true)
            }
        }
    }

    /// Nil where the hub did not know the question.
    static func decoded(_ bytes: [UInt8]) -> (part: ServerPart, cost: Int)? {
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch { return nil }
        guard let part = ServerPart(json) else { return nil }
        return (part, json.figure("cost"))
    }

    private init?(_ json: JSON) {
        if let channels = json["channels"] {
            var page = ChannelPage(isCut: json["cut"]?.bool ?? false, unlisted: json.figure("unlisted"))
            for channel in channels.elements {
                guard let key = ChannelKey(channel) else { return nil }
                page.channels.append(
                    ChannelCount(
                        key: key, connections: channel.figure("connections"), members: channel.figure("present"),
                        typing: channel.figure("typing")))
            }
            self = .channels(page)
        } else if let user = json["user"] {
            let connections = user["connections"]?.elements.map { connection in
                UserConnection(
                    id: connection["id"]?.string ?? "", seconds: connection.figure("seconds"),
                    appState: connection["state"]?.string.flatMap { ReportedAppState(rawValue: $0) },
                    channels: connection["channels"]?.elements.compactMap { ChannelKey($0) } ?? [])
            }
            self = .user(
                UserReport(
                    isOnline: user["online"]?.bool ?? false, count: user.figure("count"),
                    connections: connections ?? []))
        } else if let stats = json["stats"] {
            self = .stats(
                HubCounts(
                    connections: stats.figure("connections"), memberships: stats.figure("memberships")))
        } else if json["count"]?.int != nil {
            self = .count(json.figure("count"))
        } else if json["full"]?.bool == true {
            self = .full
        } else {
            return nil
        }
    }
}

extension JSON {
    /// A number that another hub says, and that is added to those of others: 0 where there is none.
    fileprivate func figure(_ name: String) -> Int { min(max(0, self[name]?.int ?? 0), 1 << 53) }
}
