import Hub
import Postgres
import Workers

/// Writes presences and users' status, and sends the heartbeat.
struct PresenceWorker: DatabaseWriter, ~Copyable {
    private let setup: PresenceSetup
    private let published: Published<PresenceReport>
    private var store: PresenceStore
    private var writer: UserStatusWriter?
    private var staleUsers: StaleUsers?
    private var statistics = PresenceStatistics()
    private var warnings: RateLimitedLog
    private var waitingSince: ContinuousClock.Instant?
    private var nextHeartbeat: ContinuousClock.Instant

    init(_ setup: PresenceSetup, _ published: Published<PresenceReport>) {
        self.setup = setup
        self.published = published
        store = PresenceStore(node: setup.node, log: setup.log, firstRetry: setup.timing.firstRetry)
        if let users = setup.users, let statement = setup.statement {
            writer = UserStatusWriter(
                node: setup.node, users: users, statement: statement, firstRetry: setup.timing.firstRetry)
            staleUsers = StaleUsers(node: setup.node, users: users, report: setup.whenStale)
        }
        nextHeartbeat = .now + (setup.timing.heartbeat ?? .zero)
        warnings = RateLimitedLog(logger: setup.logger)
    }

    mutating func startSession(on connection: PostgresConnection) {
        store.startSession()
        writer?.startSession()
        staleUsers?.startSession()
    }

    mutating func connectionLost() { statistics.failures += 1 }

    mutating func writeWaiting(on connection: PostgresConnection?, isLast: Bool) throws -> Bool {
        // Without a statement, the transitions have no other consumer and are discarded.
        if writer == nil { _ = setup.users?.takeTransitions() }
        guard let connection else { return false }
        let isStored = try store.writeWaiting(on: connection, isLast: isLast, &statistics, &warnings)
        let areTold = try writer?.writeWaiting(on: connection, isLast: isLast, &statistics, &warnings) ?? true
        if areTold, !isLast { try staleUsers?.findStale(on: connection) }
        try sendHeartbeat(on: connection, isLast: isLast)
        return isStored && areTold
    }

    private mutating func sendHeartbeat(on connection: PostgresConnection, isLast: Bool) throws {
        guard let interval = setup.timing.heartbeat, writer != nil, isLast || nextHeartbeat <= .now,
            setup.users?.count ?? 0 > 0
        else { return }
        nextHeartbeat = .now + interval
        _ = try connection.query(UserSQL.heartbeat, [setup.node])
    }

    var isWaiting: Bool { !setup.log.isEmpty || (writer != nil && setup.users?.hasTransitions == true) }

    mutating func publishReport(isAllWritten: Bool) {
        statistics.passes += 1
        if isAllWritten { waitingSince = nil }
        waitingSince = isWaiting ? waitingSince ?? .now : nil
        published.value = PresenceReport(statistics: statistics, waitingSince: waitingSince)
    }
}
