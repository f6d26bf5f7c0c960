import Glibc
package import Hub
package import Logging
import Postgres
import Schema
import Wire
import Workers

/// Records which sessions the hub serves with row changes (`roost.session`), so that the next process knows its clients.
///
/// Has one thread and one connection of its own. A join whose session is not written yet waits for that, for some
/// milliseconds; everything else is written within a second.
package final class SessionWriter: Sendable {
    private let conninfo: String
    private let node: String
    private let registry: SessionRegistry
    private let places: RecoveryPlaces
    private let logger: Logger
    private let stopSignal = StopSignal()
    private let heldMark: @Sendable () -> Int?
    /// Signals that a join waits for its record.
    private let awaited = EventDescriptor()
    private let thread = WorkerThread(named: "roost-sessions")
    /// For reading at startup, and for writing the rest at the end.
    private static let patience = Duration.seconds(3)

    /// - Parameters:
    ///   - registry: if it looks elsewhere (`SessionRegistry.lookElsewhere`), each write also queries other hubs' sessions.
    ///   - places: records how far the feed was at which time.
    ///   - heldMark: the limit of what is recorded as proven: the next process must send everything after it again. Nil for
    ///     no limit.
    package init(
        conninfo: String, node: String, registry: SessionRegistry, places: RecoveryPlaces, logger: Logger,
        heldMark: @escaping @Sendable () -> Int? = { nil }
    ) {
        self.heldMark = heldMark
        self.conninfo = conninfo
        self.places = places
        self.node = node
        self.registry = registry
        self.logger = logger
    }

    /// Reads the sessions of the last process. Call it before the hub listens. If it fails, no session is known, and every
    /// client that joins is sent all changes since then.
    package func restoreSessions() {
        let (conninfo, node, registry, logger) = (conninfo, node, registry, logger)
        let stopSignal = StopSignal()
        let deadline = ContinuousClock.now + Self.patience
        stopSignal.stop(by: deadline)
        // libpq's look-up of a host name has no deadline, so the thread may have to be left behind.
        let reader = WorkerThread(named: "roost-restore")
        reader.start {
            do {
                let connection = try Self.openConnection(
                    conninfo, PlainWaiter(until: stopSignal), logger, within: Self.patience / 2)
                let rows = try connection.query(SessionListSQL.storedSessions, [node])
                guard rows.count > 0 else { return }
                let now = SessionLoop.now.monotonic
                registry.restoreSessions((0..<rows.count).compactMap { SessionRegistry.Record(rows, $0, at: now) })
            } catch let error as PostgresError where error.kind == .server && error.sqlState == nil {
                logger.debug("No sessions are known from before the start: \(error)")
            } catch {
                logger.warning(
                    """
                    The sessions from before the restart cannot be read, so every client that joins is sent what \
                    happened since then: \(error)
                    """)
            }
        }
        reader.join(by: deadline + .milliseconds(100))
    }

    /// Makes joins wait for their records, which `start` begins to write.
    ///
    /// - Parameter withdraw: withdraws the claim that the records are complete, by a route other than this connection, and
    ///   reports whether that worked (`ChangeService.withdrawSessionList`). From any thread.
    package func startRecording(
        withdrawingBy withdraw: @escaping @Sendable (@escaping @Sendable (Bool) -> Void) -> Void
    ) {
        let (awaited, registry) = (awaited, registry)
        registry.startRecording(whenAwaited: { awaited.signal() }) {
            withdraw { registry.withdrawalEnded(successfully: $0) }
        }
    }

    /// Starts the thread, which replaces the records of any earlier hub of this name. From any thread; only the first call
    /// counts.
    package func start() {
        thread.start { [self] in
            var loop = SessionLoop(
                node: node, registry: registry, places: places, logger: logger, stopSignal: stopSignal,
                awaited: awaited, heldMark: heldMark)
            loop.runUntilStopped { [self] in try Self.openConnection(conninfo, PlainWaiter(until: stopSignal), logger) }
        }
    }

    /// Writes the waiting records and ends the thread; a hanging thread is left behind.
    package func stop() {
        let deadline = ContinuousClock.now + Self.patience
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    private static func openConnection(
        _ conninfo: String, _ waiter: any SocketWaiter, _ logger: Logger, within limit: Duration = .seconds(10)
    ) throws -> PostgresConnection {
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: logger, within: limit)
        try connection.runScript(SessionListSQL.sessionOfSessions)
        try Primary.demandPrimary(on: connection)
        try RoostSchema.demandCurrent(on: connection)
        return connection
    }
}

/// The life of the writer's thread: connect, write everything, then the changes.
private struct SessionLoop: ~Copyable {
    private let node: String
    private let registry: SessionRegistry
    private let places: RecoveryPlaces
    private let logger: Logger
    private let stopSignal: StopSignal
    private let awaited: EventDescriptor
    private let heldMark: @Sendable () -> Int?
    private var connection: PostgresConnection?
    /// The number of withdrawals after which the list was last declared complete; nil if it is not complete.
    private var claimed: Int?
    /// When the list's next sign of life is due.
    private var seenAt = ContinuousClock.now
    /// When the next survey of clients' positions is due; `proven` has its result, as written and as last found.
    private var surveyAt = ContinuousClock.now
    /// When other hubs' claims are looked for next; if there are other hubs, every time.
    private var claimsAt = ContinuousClock.now
    private var hasOthers = false
    private var proven: (written: Int?, found: Int?) = (nil, nil)
    private var reconnector: Reconnector

    /// Records written by one statement.
    private static let batch = 2000
    private static let interval = Duration.seconds(1)
    /// Interval between the list's signs of life; and the seconds after the recovery window for which a silent hub's list
    /// still counts (`absence`): while a hub is down for that long, its clients still come.
    private static let sight = Duration.seconds(15)
    private static let absence = 60

    init(
        node: String, registry: SessionRegistry, places: RecoveryPlaces, logger: Logger, stopSignal: StopSignal,
        awaited: EventDescriptor, heldMark: @escaping @Sendable () -> Int?
    ) {
        self.heldMark = heldMark
        self.node = node
        self.registry = registry
        self.places = places
        self.logger = logger
        self.stopSignal = stopSignal
        self.awaited = awaited
        reconnector = Reconnector(
            logger: logger,
            lost: "The clients that the hub serves cannot be recorded in the database for now; the hub keeps trying",
            regained: "The clients that the hub serves are recorded in the database again.")
    }

    mutating func runUntilStopped(_ open: () throws -> PostgresConnection) {
        while true {
            // Read before the write, so that another round writes whatever changes after it.
            let isLast = stopSignal.isStopping
            serveOnce(open, isLast: isLast)
            if isLast { break }
            waitForWork(until: .now + Self.interval)
        }
        connection = nil
    }

    private mutating func serveOnce(_ open: () throws -> PostgresConnection, isLast: Bool) {
        do {
            if connection == nil {
                guard reconnector.isDue || isLast else { return }
                let fresh = try open()
                try writeAll(on: fresh)
                connection = fresh
                reconnector.connectionOpened()
            }
            if let connection { try writeChanges(on: connection, isLast: isLast) }
        } catch {
            connection = nil
            reconnector.connectionFailed(error, isStopping: isLast)
        }
    }

    /// Writes all records, whatever happened to the tables meanwhile. The last process's records count until this commits:
    /// without any, other hubs would not know this hub's clients, and would send each client that joins there everything
    /// that any client may lack.
    private mutating func writeAll(on connection: PostgresConnection) throws {
        let withdrawals = registry.withdrawals
        registry.nothingIsWritten()
        var written: [SessionRegistry.Record] = []
        do {
            try connection.runScript("begin")
            _ = try connection.query(SessionListSQL.forgetSessions, [node])
            while case let records = registry.takeChanged(upTo: Self.batch), !records.isEmpty {
                written += records
                try storeRecords(records, on: connection)
            }
            (claimed, proven) = (nil, (nil, nil))
            let isListed = try claimComplete(on: connection, after: withdrawals)
            if !isListed { _ = try connection.query(SessionListSQL.sessionsAreUnknown, [node]) }
            try connection.runScript("commit")
            if isListed { claimed = withdrawals }
            registry.isWritten(written, successfully: true, elsewhere: try findElsewhere(written, on: connection))
        } catch {
            registry.isWritten(written, successfully: false)
            throw error
        }
    }

    private mutating func writeChanges(on connection: PostgresConnection, isLast: Bool) throws {
        if isLast || surveyAt <= .now {
            surveyAt = .now + Self.interval
            if isLast || hasOthers || claimsAt <= .now {
                claimsAt = .now + Self.sight
                try exchangeClaims(on: connection)
            }
            // In this order: whatever a pong holds back is held back before the pong counts.
            let surveyed = registry.surveyProgress(at: Self.now)
            proven.found = surveyed.map { min($0, heldMark() ?? .max) } ?? proven.found
        }
        while case let records = registry.takeChanged(upTo: Self.batch), !records.isEmpty {
            do {
                try storeRecords(records, on: connection)
                registry.isWritten(records, successfully: true, elsewhere: try findElsewhere(records, on: connection))
            } catch {
                registry.isWritten(records, successfully: false)
                throw error
            }
        }
        if !registry.isComplete(at: Self.now) {
            guard claimed != nil else { return }
            _ = try connection.query(SessionListSQL.sessionsAreUnknown, [node])
            claimed = nil
        } else if case let withdrawals = registry.withdrawals, claimed != withdrawals {
            if try claimComplete(on: connection, after: withdrawals) { claimed = withdrawals }
        } else if proven.found != proven.written {
            hasOthers = try connection.query(SessionListSQL.sessionsAreProven, [node, provenText]).flag(0, 0)
            proven.written = proven.found
            seenAt = .now + Self.sight
        } else if seenAt <= .now {
            hasOthers = try connection.query(SessionListSQL.sessionsAreSeen, [node]).flag(0, 0)
            seenAt = .now + Self.sight
        }
    }

    /// Takes other hubs' claims on this hub's sessions, and claims the records that they keep of clients which are here.
    private func exchangeClaims(on connection: PostgresConnection) throws {
        let rows = try connection.query(SessionListSQL.takeClaims, [node])
        let now = Self.now
        registry.endClaimed(
            (0..<rows.count).compactMap { row in
                guard let key = rows.text(row, 0).flatMap({ RecoveryKey(text: $0) }),
                    let age = rows.boundedInteger(row, 1)
                else { return nil }
                return (key, now.monotonic - max(0, age))
            })
        let claims = registry.takeClaims(at: now)
        guard !claims.isEmpty else { return }
        var (nodes, keys, times) = (TextArray(), TextArray(), TextArray())
        for claim in claims {
            nodes.append(claim.node.utf8)
            keys.append(claim.key.text.utf8)
            times.append(claim.soughtAt.utf8)
        }
        _ = try connection.query(SessionListSQL.claimSessions, [nodes.literal, keys.literal, times.literal])
    }

    private var provenText: String? { proven.found.flatMap { places.snapshot(at: .mark($0)) } }

    /// The other hubs that have had clients with these keys. Queried when the keys have been written: of two hubs, the one
    /// that queries second finds the other.
    private func findElsewhere(
        _ records: [SessionRegistry.Record], on connection: PostgresConnection
    ) throws -> [RecoveryKey: [SessionRegistry.Elsewhere]] {
        let sought = Set(records.lazy.flatMap(\.sought))
        guard !sought.isEmpty else { return [:] }
        var keys = TextArray()
        for key in sought { keys.append(key.text.utf8) }
        let seconds = registry.windowSeconds + Self.absence
        let rows = try connection.query(SessionListSQL.sessionsElsewhere, [node, keys.literal, String(seconds)])
        var found: [RecoveryKey: [SessionRegistry.Elsewhere]] = [:]
        for row in 0..<rows.count {
            guard let key = rows.text(row, 0).flatMap({ RecoveryKey(text: $0) }), let other = rows.text(row, 1),
                let snapshot = Snapshot.laterPlace(rows.text(row, 3), proven: rows.text(row, 4)) ?? rows.text(row, 2)
            else { continue }
            found[key, default: []].append(
                SessionRegistry.Elsewhere(node: other, snapshot: snapshot, soughtAt: rows.text(row, 5)))
        }
        return found
    }

    /// Declares the list complete. The order matters: the count, the turn, then the check that the claim is true.
    ///
    /// - Parameter withdrawals: the number of withdrawals before the written records were taken.
    /// - Returns: true if the list was declared complete.
    private mutating func claimComplete(on connection: PostgresConnection, after withdrawals: Int) throws -> Bool {
        let row = try connection.query(SessionListSQL.listTurn, [node])
        guard row.count > 0, let turn = row.text(0, 0), registry.beginsClaim(at: Self.now, after: withdrawals) else {
            return false
        }
        _ = try connection.query(SessionListSQL.sessionsAreListed, [node, turn, provenText])
        proven.written = proven.found
        return true
    }

    private func storeRecords(_ records: [SessionRegistry.Record], on connection: PostgresConnection) throws {
        var (gone, keys, counts, following, stored, lost) = (
            TextArray(), TextArray(), TextArray(), TextArray(), TextArray(), TextArray()
        )
        let now = Self.now.monotonic
        for record in records {
            if record.count == 0 {
                gone.append(record.key.text.utf8)
            } else {
                keys.append(record.key.text.utf8)
                counts.append(Int64(record.count))
                let (follows, point) = record.place.column
                let place = places.snapshot(at: point)
                following.append(follows && place != nil)
                stored.append(place?.utf8)
                lost.append(record.lostAt.map { String(max(0, now - $0)).utf8 })
            }
        }
        _ = try connection.query(
            SessionListSQL.storeSessions,
            [
                node, gone.literal, keys.literal, counts.literal, following.literal, stored.literal, lost.literal,
            ])
    }

    /// Waits until a join needs its record, the interval is over, or the writer stops. A lost connection is noticed at
    /// once, because the tables may be empty by then.
    private mutating func waitForWork(until end: ContinuousClock.Instant) {
        var polled = [
            pollfd(fd: stopSignal.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: awaited.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: connection?.descriptor ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&polled, nfds_t(polled.count), milliseconds(until: end)) > 0 else { return }
        if polled[1].revents != 0 { awaited.clear() }
        guard polled[2].revents != 0 else { return }
        do { _ = try connection?.takeNotifications() } catch { connection = nil }
    }

    fileprivate static var now: HubTime {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return HubTime(monotonic: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000, unix: 0)
    }
}

extension SessionRegistry.Record {
    /// A row of StoredSessions in SessionList.sql; nil for the row that stands for no client.
    ///
    /// - Parameter now: the latest time at which the ended process can have lost its clients.
    init?(_ rows: QueryResult, _ row: Int, at now: Int64) {
        guard let key = rows.text(row, 0).flatMap({ RecoveryKey(text: $0) }), let count = rows.boundedInteger(row, 1)
        else {
            return nil
        }
        let place = Snapshot.laterPlace(rows.text(row, 2), proven: rows.text(row, 3))
        self.init(
            key: key, count: Int(count), place: .at(place.map { .restored($0) } ?? .restart),
            lostAt: now - max(0, rows.boundedInteger(row, 4) ?? 0))
    }
}

extension SessionRegistry.Place {
    /// The columns `follows` and `place`.
    fileprivate var column: (Bool, RecoveryPoint) {
        switch self {
        case .at(let point): (false, point)
        case .following(let mark): (true, .mark(mark))
        }
    }
}

extension Snapshot {
    /// The position of a row's clients: the row's place or the proven position of all followers, whichever is later.
    fileprivate static func laterPlace(_ text: String?, proven: String?) -> String? {
        guard let place = text.flatMap({ Snapshot($0) }) else { return nil }
        guard let proven = proven.flatMap({ Snapshot($0) }), place.precedes(proven) else { return place.text }
        return proven.text
    }
}

extension RecoveryKey {
    /// The uuid form, which Postgres keeps in 16 bytes.
    fileprivate var text: String { UUIDText.formatUUID(UInt128(high) << 64 | UInt128(low)) }

    fileprivate init?(text: String) {
        guard let value = UUIDText.parse(Array(text.utf8)) else { return nil }
        self.init(high: UInt64(truncatingIfNeeded: value >> 64), low: UInt64(truncatingIfNeeded: value))
    }
}
