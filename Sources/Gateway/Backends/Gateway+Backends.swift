import CWebSockets
package import Hub
package import Wire

/// Queries and commands from backends to all loops. Each reply includes the highest cost on any one loop, in
/// microseconds, and runs on the thread of the last loop to answer.
extension Gateway {
    package func channelPage(
        prefix: String, after: ChannelKey?, limit: Int,
        then reply: @escaping @Sendable (_ page: ChannelPage, _ cost: Int) -> Void
    ) {
        timedSurvey({ $0.hub.channelPage(prefix: prefix, after: after, limit: limit) }) { pages, cost in
            reply(ChannelPage.mergePages(pages, limit: limit), cost)
        }
    }

    package func count(
        of key: ChannelKey, then reply: @escaping @Sendable (_ count: ChannelCount, _ cost: Int) -> Void
    ) {
        timedSurvey({ $0.hub.count(of: key) }) { counts, cost in
            reply(counts.reduce(into: ChannelCount(key: key)) { $0.mergeCount($1) }, cost)
        }
    }

    /// Asks one loop at random, because every loop knows all presences.
    package func presencePage(
        of key: ChannelKey, after: PresencePage.Place?, limit: Int,
        then reply: @escaping @Sendable (_ page: PresencePage, _ cost: Int) -> Void
    ) {
        inboxes.randomElement()?.post(
            .inspect { loop in
                let (page, cost) = Self.timed { loop.hub.presencePage(of: key, after: after, limit: limit) }
                reply(page, cost)
            })
    }

    /// Asks one loop at random. Every loop knows all typists, but if there are more than the limit, loops may list
    /// different ones.
    package func typists(
        in key: ChannelKey, limit: Int,
        then reply: @escaping @Sendable (_ typists: [(user: Name?, payload: [UInt8])], _ cost: Int) -> Void
    ) {
        inboxes.randomElement()?.post(
            .inspect { loop in
                let (typists, cost) = Self.timed { loop.hub.typists(in: key, limit: limit) }
                reply(typists, cost)
            })
    }

    /// A user's connections to this hub: up to `limit` of them, and their total number.
    package func connections(
        ofUser user: Name, limit: Int,
        then reply: @escaping @Sendable (_ connections: [UserConnection], _ count: Int, _ cost: Int) -> Void
    ) {
        timedSurvey({ $0.connections(ofUser: user, limit: limit) }) { parts, cost in
            let all = parts.flatMap(\.connections)
            reply(Array(all.prefix(limit)), parts.reduce(0) { $0 + $1.count }, cost)
        }
    }

    /// Whether a user counts as online here, with a socket or in a grace window; nil if the hub does not track it.
    package func isOnline(_ user: Name) -> Bool? { shared.users?.isOnline(user) }

    /// Closes all connections of a user, in a way that makes clients reconnect.
    package func disconnectByBackend(
        _ user: Name, then reply: @escaping @Sendable (_ count: Int, _ cost: Int) -> Void
    ) {
        timedSurvey({ $0.disconnect(user: user, reason: "disconnected by a backend") }) { counts, cost in
            reply(counts.reduce(0, +), cost)
        }
    }

    /// Removes a user from a channel.
    ///
    /// - Parameters:
    ///   - seconds: how long the user is barred from joining again; nil for no bar.
    ///   - reply: gets nil if there is no room to store the bar; nothing is done then.
    package func unsubscribe(
        _ user: Name, from key: ChannelKey, seconds: Int?,
        then reply: @escaping @Sendable (_ count: Int?, _ cost: Int) -> Void
    ) {
        // Before the loops are asked, so that a join in between is either refused or found.
        if let seconds, !shared.bars.barUser(user, from: key, seconds: seconds, at: EventLoop.milliseconds) {
            return reply(nil, 0)
        }
        timedSurvey({ $0.hub.removeUser(user, from: key, seconds: seconds) }) { counts, cost in
            reply(counts.reduce(0, +), cost)
        }
    }

    /// Asks the policies again what a user may do in private channels.
    package func refresh(_ user: Name, then reply: @escaping @Sendable (_ count: Int, _ cost: Int) -> Void) {
        timedSurvey({ $0.hub.refreshUser(user) }) { counts, cost in reply(counts.reduce(0, +), cost) }
    }

    private func timedSurvey<Part: Sendable>(
        _ question: @escaping @Sendable (EventLoop) -> Part, then reply: @escaping @Sendable ([Part], Int) -> Void
    ) {
        survey({ loop in Self.timed { question(loop) } }) { parts in
            reply(parts.map(\.0), parts.map(\.1).max() ?? 0)
        }
    }

    private static func timed<Part>(_ body: () -> Part) -> (Part, Int) {
        let began = uv_hrtime()
        let part = body()
        return (part, Int((uv_hrtime() - began) / 1000))
    }
}

/// One connection of a user, for a backend.
package struct UserConnection: Sendable, Equatable {
    /// Assigned by the hub that has the connection.
    package let id: String
    /// The connection's age.
    package let seconds: Int
    package let appState: ReportedAppState?
    /// Some of the connection's channels.
    package let channels: [ChannelKey]

    package init(id: String, seconds: Int, appState: ReportedAppState?, channels: [ChannelKey]) {
        self.id = id
        self.seconds = seconds
        self.appState = appState
        self.channels = channels
    }

    /// The most channels listed for a connection.
    package static let mostChannels = 100
}

extension EventLoop {
    func connections(ofUser user: Name, limit: Int) -> (connections: [UserConnection], count: Int) {
        let slots = hub.slots(ofUser: user)
        let connections = slots.prefix(limit).map { slot in
            let (channels, appState) = hub.channels(of: slot, limit: UserConnection.mostChannels)
            return UserConnection(
                id: id(of: slot).description, seconds: Int(second - delivery.accounts[Int(slot)].openedAt),
                appState: appState, channels: channels)
        }
        return (connections, slots.count)
    }
}
