import Glibc
import Hub
import Logging
import Postgres
import Workers

/// The life of the thread that writes presence: connect, write in passes until the database goes away, try again.
struct PresenceWorker: ~Copyable {
    private let setup: PresenceSetup
    private let stopSignal: StopSignal
    private let published: Published<PresenceReport>
    private var store: PresenceStore
    private var writer: UserStatusWriter?
    private var staleUsers: StaleUsers?
    private var connection: PostgresConnection?
    private var statistics = PresenceStatistics()
    private var warnings: RateLimitedLog
    private var reconnector: Reconnector
    private var waitingSince: ContinuousClock.Instant?
    private var nextHeartbeat: ContinuousClock.Instant

    init(_ setup: PresenceSetup, _ stopSignal: StopSignal, _ published: Published<PresenceReport>) {
        self.setup = setup
        self.stopSignal = stopSignal
        self.published = published
        store = PresenceStore(node: setup.node, log: setup.log, firstRetry: setup.timing.firstRetry)
        if let users = setup.users, let statement = setup.statement {
            writer = UserStatusWriter(
                node: setup.node, users: users, statement: statement, firstRetry: setup.timing.firstRetry)
            staleUsers = StaleUsers(node: setup.node, users: users, report: setup.whenStale)
        }
        nextHeartbeat = .now + (setup.timing.heartbeat ?? .zero)
        warnings = RateLimitedLog(logger: setup.logger)
        reconnector = Reconnector(
            first: setup.timing.firstRetry, logger: setup.logger,
            lost: "Presence is not written to the database for now; the hub keeps trying",
            regained: "Presence is written to the database again.")
    }

    mutating func run() {
        while !stopSignal.isStopping {
            let begin = ContinuousClock.now
            if connection == nil, reconnector.isDue { connect() }
            note(isAllWritten: write(isLast: false))
            rest(until: begin + setup.timing.interval)
        }
        finish()
        connection = nil
    }

    private mutating func connect() {
        do {
            let fresh = try PresenceSession.open(
                setup.conninfo, waiter: PlainWaiter(until: stopSignal), logger: setup.logger)
            connection = fresh
            reconnector.connected()
            store.begin()
            writer?.begin()
            staleUsers?.begin()
        } catch {
            lost(because: error)
        }
    }

    private mutating func lost(because error: any Error) {
        connection = nil
        statistics.failures += 1
        reconnector.failed(error, isStopping: stopSignal.isStopping)
    }

    /// - Returns: whether all that waited is written.
    private mutating func write(isLast: Bool) -> Bool {
        // Nobody else takes what nobody is to be told.
        if writer == nil { _ = setup.users?.take() }
        guard let connection else { return false }
        do {
            let isStored = try store.write(on: connection, isLast: isLast, &statistics, &warnings)
            let areTold =
                try writer?.write(on: connection, isLast: isLast, &statistics, &warnings) ?? true
            if areTold, !isLast { try staleUsers?.look(on: connection) }
            try sendHeartbeat(on: connection, isLast: isLast)
            return isStored && areTold
        } catch {
            lost(because: error)
            return false
        }
    }

    private mutating func sendHeartbeat(on connection: PostgresConnection, isLast: Bool) throws {
        guard let interval = setup.timing.heartbeat, writer != nil, isLast || nextHeartbeat <= .now,
            setup.users?.count ?? 0 > 0
        else { return }
        nextHeartbeat = .now + interval
        _ = try connection.query(UserSQL.heartbeat, [setup.node])
    }

    private var isWaiting: Bool { !setup.log.isEmpty || (writer != nil && setup.users?.hasTransitions == true) }

    private mutating func note(isAllWritten: Bool) {
        statistics.passes += 1
        if isAllWritten { waitingSince = nil }
        waitingSince = isWaiting ? waitingSince ?? .now : nil
        published.value = PresenceReport(statistics: statistics, waitingSince: waitingSince)
    }

    /// Waits for the next pass, or the end. A connection that goes away meanwhile is noticed at once: the table may be empty
    /// by then, though nothing has changed here.
    private mutating func rest(until end: ContinuousClock.Instant) {
        while !stopSignal.isStopping, ContinuousClock.now < end {
            var polled = [
                pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: connection?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&polled, nfds_t(polled.count), milliseconds(until: end)) > 0, polled[1].revents != 0 else {
                continue
            }
            do { _ = try connection?.takeNotifications() } catch { lost(because: error) }
        }
    }

    /// Writes the rest, as far as there is time.
    private mutating func finish() {
        guard isWaiting || connection != nil else { return }
        if connection == nil { connect() }
        var isAllWritten = write(isLast: true)
        if connection == nil {
            // It had been lost before and nobody noticed.
            connect()
            isAllWritten = write(isLast: true)
        }
        note(isAllWritten: isAllWritten)
        if !isAllWritten, isWaiting {
            setup.logger.warning(
                "The hub stopped before all changes of presence were written; after the restart some may be missing.")
        }
    }
}
