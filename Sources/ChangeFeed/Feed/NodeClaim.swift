import Logging
package import Postgres

/// A hub's claim to its name, and its detection of other hubs that claim the same name.
///
/// Two hubs of one name overwrite each other's position in the feed and presence records. Neither is stopped, because there
/// is no telling which is the right one: the log reports it, and so does `roost doctor`.
package struct NodeClaim {
    package typealias Instant = ContinuousClock.Instant

    /// When the next search for others is due.
    package private(set) var lookAt: Instant
    /// When each of the others was first seen, and its last activity at that time.
    private var seen: [Int32: (at: Instant, change: String?)] = [:]

    /// Interval between two searches, and thus the shortest one between two warnings.
    private static let interval = Duration.seconds(60)
    /// Interval between two searches while a session's nature is unknown.
    private static let suspense = Duration.seconds(2)
    /// The server ends the session of a vanished hub within 11 s (Sessions.sql); a session that stays longer belongs to a
    /// live hub.
    private static let leftover = Duration.seconds(15)

    package init(at now: Instant) { lookAt = now }

    /// - Parameters:
    ///   - sessions: sessions that claim the name.
    ///   - own: earlier sessions of this process; the server may not have ended them all.
    /// - Returns: a session that certainly belongs to another hub.
    package mutating func findRival(_ sessions: [HubSession], own: Set<Int32>, at now: Instant) -> HubSession? {
        let others = sessions.filter { !own.contains($0.backendID) }
        seen = seen.filter { id, _ in others.contains { $0.backendID == id } }
        for other in others where seen[other.backendID] == nil { seen[other.backendID] = (now, other.change) }
        let rival = others.first { other in
            guard let first = seen[other.backendID] else { return false }
            // Activity proves that a session is alive; a leftover shows none.
            return now - first.at >= Self.leftover || other.change != first.change
        }
        lookAt = now + (rival == nil && !others.isEmpty ? Self.suspense : Self.interval)
        return rival
    }
}

/// Searches now and then for other hubs of the same name. One for each connection of the feed.
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

    func findRivals() throws {
        let sessions = try HubSession.all(of: doorbell, on: environment.reader)
        guard let rival = claim.findRival(sessions, own: environment.state.readers, at: .now) else { return }
        environment.logger.warning(
            """
            Another hub is connected as \(environment.configuration.node) (\(rival.place)): they overwrite each other's place in \
            the feed, so clients may miss changes after a restart; give each a node.name (ROOST_NODE_NAME) of its own.
            """)
    }
}

/// A session that claims a hub's name.
package struct HubSession: Equatable {
    let backendID: Int32
    /// Its address and start: `at 10.0.0.7 since …`.
    package let place: String
    /// Time of its last activity, as text; nil if this role may not see it.
    let change: String?

    /// The sessions that hold the doorbell of a hub's name.
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
