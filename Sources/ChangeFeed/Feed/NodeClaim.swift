import Logging
package import Postgres

/// A hub's share of its name, and what it finds of others that have one.
///
/// Two hubs of one name overwrite each other's place in the feed and what they write of presence. Neither is kept from
/// its work, as which of them is the right one cannot be told: the log says so, and `roost doctor`.
package struct NodeClaim {
    package typealias Instant = ContinuousClock.Instant

    /// When others are looked for again.
    package private(set) var lookAt: Instant
    /// When each of the others was first seen, and when it had last done something then.
    private var seen: [Int32: (at: Instant, change: String?)] = [:]

    /// Between two looks; what is said of others, too, is said no more often.
    private static let interval = Duration.seconds(60)
    /// Between two looks while it is not known what somebody is.
    private static let suspense = Duration.seconds(2)
    /// A session whose hub is gone is ended by the server within 11 s (Sessions.sql); what is there for longer is a hub.
    private static let leftover = Duration.seconds(15)

    package init(at now: Instant) { lookAt = now }

    /// - Parameters:
    ///   - sessions: that have a share of the name.
    ///   - own: sessions that this process had before; the server may not have ended them all.
    /// - Returns: one that certainly belongs to another hub.
    package mutating func judge(_ sessions: [HubSession], own: Set<Int32>, at now: Instant) -> HubSession? {
        let others = sessions.filter { !own.contains($0.backendID) }
        seen = seen.filter { id, _ in others.contains { $0.backendID == id } }
        for other in others where seen[other.backendID] == nil { seen[other.backendID] = (now, other.change) }
        let rival = others.first { other in
            guard let first = seen[other.backendID] else { return false }
            // What does something is alive; a leftover does nothing more.
            return now - first.at >= Self.leftover || other.change != first.change
        }
        lookAt = now + (rival == nil && !others.isEmpty ? Self.suspense : Self.interval)
        return rival
    }
}

/// Looks now and then for other hubs of the same name. One for each connection of the feed.
final class RivalWatch {
    private let environment: FeedEnvironment
    /// The number of this hub's doorbell, which stands for its name.
    private let doorbell: String
    private var claim: NodeClaim

    init(_ environment: FeedEnvironment, doorbell: String, at now: ContinuousClock.Instant) {
        self.environment = environment
        self.doorbell = doorbell
        claim = NodeClaim(at: now)
    }

    var dueAt: ContinuousClock.Instant { claim.lookAt }

    func look() throws {
        let sessions = try HubSession.all(of: doorbell, on: environment.reader)
        guard let rival = claim.judge(sessions, own: environment.state.readers, at: .now) else { return }
        environment.logger.warning(
            """
            Another hub is connected as \(environment.configuration.node) (\(rival.place)): they overwrite each other's place in \
            the feed, so clients may miss changes after a restart; give each a node.name (ROOST_NODE_NAME) of its own.
            """)
    }
}

/// A session that has a share of a hub's name.
package struct HubSession: Equatable {
    let backendID: Int32
    /// Where it is and since when: `at 10.0.0.7 since …`.
    package let place: String
    /// When it last did something, as text; nil where this role may not know.
    let change: String?

    /// Those that hold the doorbell of a hub's name.
    ///
    /// - Throws: `PostgresError`.
    package static func all(of doorbell: String, on connection: PostgresConnection) throws -> [HubSession] {
        let rows = try connection.query(FeedSQL.hubSessions, [doorbell])
        return (0..<rows.count).map { HubSession(rows, $0) }
    }

    private init(_ rows: QueryResult, _ row: Int) {
        backendID = Int32(truncatingIfNeeded: rows.integer(row, 0) ?? 0)
        let since = rows.text(row, 2).map { " since \($0)" } ?? ""
        place = (rows.text(row, 1) ?? "elsewhere") + since
        change = rows.text(row, 3)
    }

    package init(backendID: Int32, place: String, change: String?) {
        self.backendID = backendID
        self.place = place
        self.change = change
    }
}
