import Glibc
import Hub
import Logging
import Postgres

/// The life of the keeper's thread: connect, write once in a beat until the database goes away, try again.
struct PresenceLoop: ~Copyable {
    private let setup: PresenceSetup
    private let signal: PresenceSignal
    private let published: PresencePublished
    private var store: PresenceStore
    private var writer: UserStatusWriter?
    private var leftOnes: LeftOnes?
    private var connection: PostgresConnection?
    private var statistics = PresenceStatistics()
    private var complaints: RateLimitedLog
    private var backoff: Backoff
    private var retryAt: ContinuousClock.Instant?
    private var waitingSince: ContinuousClock.Instant?
    private var nextSign: ContinuousClock.Instant
    private var isAway = false

    init(_ setup: PresenceSetup, _ signal: PresenceSignal, _ published: PresencePublished) {
        self.setup = setup
        self.signal = signal
        self.published = published
        store = PresenceStore(node: setup.node, log: setup.log, firstRetry: setup.rhythm.firstRetry)
        if let users = setup.users, let statement = setup.statement {
            writer = UserStatusWriter(
                node: setup.node, users: users, statement: statement, firstRetry: setup.rhythm.firstRetry)
            leftOnes = LeftOnes(node: setup.node, users: users, report: setup.leftOnline)
        }
        nextSign = .now + (setup.rhythm.signOfLife ?? .zero)
        complaints = RateLimitedLog(logger: setup.logger)
        backoff = Backoff(first: setup.rhythm.firstRetry)
    }

    mutating func run() {
        while !signal.isStopping {
            let beat = ContinuousClock.now
            if connection == nil, retryAt.map({ $0 <= beat }) ?? true { connect() }
            note(isAllWritten: write(isLast: false))
            rest(until: beat + setup.rhythm.beat)
        }
        finish()
        connection = nil
        signal.noteEnd()
    }

    private mutating func connect() {
        do {
            let fresh = try PresenceSession.open(
                setup.conninfo, waiter: PresenceWaiter(signal: signal), logger: setup.logger)
            connection = fresh
            backoff.connected(at: .now)
            retryAt = nil
            store.begin()
            writer?.begin()
            leftOnes?.begin()
            if isAway { setup.logger.info("Presence is written to the database again.") }
            isAway = false
        } catch {
            lost(because: error)
        }
    }

    private mutating func lost(because error: any Error) {
        connection = nil
        retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
        statistics.failures += 1
        if !isAway, !signal.isStopping {
            setup.logger.warning("Presence is not written to the database for now, and tried again: \(error)")
        }
        isAway = true
    }

    /// - Returns: whether all that waited is written.
    private mutating func write(isLast: Bool) -> Bool {
        // Nobody else takes what nobody is to be told.
        if writer == nil { _ = setup.users?.take() }
        guard let connection else { return false }
        do {
            let isStored = try store.write(on: connection, isLast: isLast, &statistics, &complaints)
            let areTold =
                try writer?.write(on: connection, isLast: isLast, &statistics, &complaints) ?? true
            if areTold, !isLast { try leftOnes?.look(on: connection) }
            try giveSign(on: connection, isLast: isLast)
            return isStored && areTold
        } catch {
            lost(because: error)
            return false
        }
    }

    private mutating func giveSign(on connection: PostgresConnection, isLast: Bool) throws {
        guard let rhythm = setup.rhythm.signOfLife, writer != nil, isLast || nextSign <= .now,
            setup.users?.count ?? 0 > 0
        else { return }
        nextSign = .now + rhythm
        _ = try connection.query(SQL.signOfLife, [setup.node])
    }

    private var isWaiting: Bool { !setup.log.isEmpty || (writer != nil && setup.users?.hasTransitions == true) }

    private mutating func note(isAllWritten: Bool) {
        statistics.beats += 1
        if isAllWritten { waitingSince = nil }
        waitingSince = isWaiting ? waitingSince ?? .now : nil
        published.publish(statistics, waitingSince: waitingSince)
    }

    /// Until the next beat, or the end. A connection that goes away meanwhile is noticed at once: the table may be empty
    /// by then, though nothing has changed here.
    private mutating func rest(until end: ContinuousClock.Instant) {
        while !signal.isStopping, ContinuousClock.now < end {
            var polled = [
                pollfd(fd: signal.descriptor, events: Int16(POLLIN), revents: 0),
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
