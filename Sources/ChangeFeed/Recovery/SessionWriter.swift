import Glibc
package import Hub
package import Logging
import Postgres
import Schema
import Wire
import Workers

/// Writes down whom the hub serves with row changes (`roost.session`), so that the next process knows who was there.
///
/// One thread and one connection of its own. A join whose session is not written yet waits for it, for some milliseconds;
/// all else is written within a second.
package final class SessionWriter: Sendable {
    private let conninfo: String
    private let node: String
    private let registry: SessionRegistry
    private let places: RecoveryPlaces
    private let logger: Logger
    private let stopSignal = StopSignal()
    private let heldMark: @Sendable () -> Int?
    /// A join waits to be written down.
    private let awaited = EventDescriptor()
    private let thread = WorkerThread(named: "roost-sessions")
    /// For reading at start-up, and for writing the rest at the end.
    private static let patience = Duration.seconds(3)

    /// - Parameters:
    ///   - registry: where it looks elsewhere (`SessionRegistry.lookElsewhere`), each write asks for other hubs, too.
    ///   - places: where the feed says how far it was when.
    ///   - heldMark: no more is written down as proven than up to there, however much is: what was proven beyond has to be sent again
    ///     by a next process. Nil for nobody.
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

    /// Reads whom the last process served. To be called before the hub listens. Where it fails, nobody is known, and what
    /// was missed is sent to everybody who joins.
    package func restore() {
        let (conninfo, node, registry, logger) = (conninfo, node, registry, logger)
        let stopSignal = StopSignal()
        let deadline = ContinuousClock.now + Self.patience
        stopSignal.stop(by: deadline)
        // The look-up of a host's name has no deadline in libpq, so the thread may have to be left behind.
        let reader = WorkerThread(named: "roost-restore")
        reader.start {
            do {
                let connection = try Self.open(
                    conninfo, PlainWaiter(until: stopSignal), logger, within: Self.patience / 2)
                let rows = try connection.query(SessionListSQL.storedSessions, [node])
                guard rows.count > 0 else { return }
                let now = SessionLoop.now.monotonic
                registry.restore((0..<rows.count).compactMap { SessionRegistry.Record(rows, $0, at: now) })
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

    /// From here on joins wait to be written down, which `start` begins with.
    ///
    /// - Parameter withdraw: sees to it that what is written does not count as complete any more, by another way than this
    ///   one, and says whether that worked (`ChangeService.withdrawSessionList`). From any thread.
    package func record(withdrawingBy withdraw: @escaping @Sendable (@escaping @Sendable (Bool) -> Void) -> Void) {
        let (awaited, registry) = (awaited, registry)
        registry.record(whenAwaited: { awaited.signal() }) {
            withdraw { registry.withdrawn(successfully: $0) }
        }
    }

    /// Starts the thread, which takes the place of what a hub of this name wrote down before. From any thread; only the first
    /// time counts.
    package func start() {
        thread.start { [self] in
            var loop = SessionLoop(
                node: node, registry: registry, places: places, logger: logger, stopSignal: stopSignal,
                awaited: awaited, heldMark: heldMark)
            loop.run { [self] in try Self.open(conninfo, PlainWaiter(until: stopSignal), logger) }
        }
    }

    /// Writes what waits and ends the thread; one that hangs is left behind.
    package func stop() {
        let deadline = ContinuousClock.now + Self.patience
        stopSignal.stop(by: deadline)
        thread.join(by: deadline + .milliseconds(100))
    }

    private static func open(
        _ conninfo: String, _ waiter: any SocketWaiter, _ logger: Logger, within limit: Duration = .seconds(10)
    ) throws -> PostgresConnection {
        let connection = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: waiter, logger: logger, within: limit)
        try connection.run(SessionListSQL.sessionOfSessions)
        try Primary.demand(on: connection)
        try RoostSchema.demandCurrent(on: connection)
        return connection
    }
}

/// The life of the writer's thread: connect, write all, then what changes.
private struct SessionLoop: ~Copyable {
    private let node: String
    private let registry: SessionRegistry
    private let places: RecoveryPlaces
    private let logger: Logger
    private let stopSignal: StopSignal
    private let awaited: EventDescriptor
    private let heldMark: @Sendable () -> Int?
    private var connection: PostgresConnection?
    /// After how many withdrawals the list was last called complete; nil where it is not.
    private var claimed: Int?
    /// When it is said next that the list is written.
    private var seenAt = ContinuousClock.now
    /// When it is looked at next how far everybody is; and what was found proven then, as it is written and as it is to be.
    private var surveyAt = ContinuousClock.now
    /// When claims of other hubs are looked for; every time where there are others.
    private var claimsAt = ContinuousClock.now
    private var hasOthers = false
    private var proven: (written: Int?, found: Int?) = (nil, nil)
    private var reconnector: Reconnector

    /// Written by one statement.
    private static let batch = 2000
    private static let interval = Duration.seconds(1)
    /// Between two words that the list is written, and the seconds after the recovery window for which another hub's list counts
    /// that says nothing any more: while a hub is down for them, clients still come.
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

    mutating func run(_ open: () throws -> PostgresConnection) {
        while true {
            // Before the last look: what changes after it is written by the next one.
            let isLast = stopSignal.isStopping
            serve(open, isLast: isLast)
            if isLast { break }
            rest(until: .now + Self.interval)
        }
        connection = nil
    }

    private mutating func serve(_ open: () throws -> PostgresConnection, isLast: Bool) {
        do {
            if connection == nil {
                guard reconnector.isDue || isLast else { return }
                let fresh = try open()
                try writeAll(on: fresh)
                connection = fresh
                reconnector.connected()
            }
            if let connection { try writeChanges(on: connection, isLast: isLast) }
        } catch {
            connection = nil
            reconnector.failed(error, isStopping: isLast)
        }
    }

    /// Whatever happened to the tables meanwhile. What the last process wrote counts until this does: in between, other hubs would not
    /// know whom this one served, and send whoever joins there all that anybody may lack.
    private mutating func writeAll(on connection: PostgresConnection) throws {
        let withdrawals = registry.withdrawals
        registry.nothingIsWritten()
        var written: [SessionRegistry.Record] = []
        do {
            try connection.run("begin")
            _ = try connection.query(SessionListSQL.forgetSessions, [node])
            while case let records = registry.takeChanged(upTo: Self.batch), !records.isEmpty {
                written += records
                try store(records, on: connection)
            }
            (claimed, proven) = (nil, (nil, nil))
            let isListed = try claim(on: connection, after: withdrawals)
            if !isListed { _ = try connection.query(SessionListSQL.sessionsAreUnknown, [node]) }
            try connection.run("commit")
            if isListed { claimed = withdrawals }
            registry.isWritten(written, successfully: true, elsewhere: try elsewhere(written, on: connection))
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
            // In this order: what a pong holds is held before it counts.
            let surveyed = registry.survey(at: Self.now)
            proven.found = surveyed.map { min($0, heldMark() ?? .max) } ?? proven.found
        }
        while case let records = registry.takeChanged(upTo: Self.batch), !records.isEmpty {
            do {
                try store(records, on: connection)
                registry.isWritten(records, successfully: true, elsewhere: try elsewhere(records, on: connection))
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
            if try claim(on: connection, after: withdrawals) { claimed = withdrawals }
        } else if proven.found != proven.written {
            hasOthers = try connection.query(SessionListSQL.sessionsAreProven, [node, provenText]).flag(0, 0)
            proven.written = proven.found
            seenAt = .now + Self.sight
        } else if seenAt <= .now {
            hasOthers = try connection.query(SessionListSQL.sessionsAreSeen, [node]).flag(0, 0)
            seenAt = .now + Self.sight
        }
    }

    /// Takes what other hubs claim of this one's sessions, and claims what they keep of clients that are here.
    private func exchangeClaims(on connection: PostgresConnection) throws {
        let rows = try connection.query(SessionListSQL.takeClaims, [node])
        let now = Self.now
        registry.areClaimed(
            (0..<rows.count).compactMap { row in
                guard let key = rows.text(row, 0).flatMap({ RecoveryKey(text: $0) }), let age = rows.figure(row, 1)
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

    /// Which other hubs have had somebody of these keys. To be asked when the keys are written: whoever asks second finds the
    /// other.
    private func elsewhere(
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
                let snapshot = Snapshot.place(rows.text(row, 3), proven: rows.text(row, 4)) ?? rows.text(row, 2)
            else { continue }
            found[key, default: []].append(
                SessionRegistry.Elsewhere(node: other, snapshot: snapshot, soughtAt: rows.text(row, 5)))
        }
        return found
    }

    /// Calls the list complete. In this order: the count, the turn, whether it is true.
    ///
    /// - Parameter withdrawals: how many there were before what is written was taken.
    /// - Returns: whether it is called so.
    private mutating func claim(on connection: PostgresConnection, after withdrawals: Int) throws -> Bool {
        let row = try connection.query(SessionListSQL.listTurn, [node])
        guard row.count > 0, let turn = row.text(0, 0), registry.beginsClaim(at: Self.now, after: withdrawals) else {
            return false
        }
        _ = try connection.query(SessionListSQL.sessionsAreListed, [node, turn, provenText])
        proven.written = proven.found
        return true
    }

    private func store(_ records: [SessionRegistry.Record], on connection: PostgresConnection) throws {
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

    /// Until a join waits, the interval is over, or the end; a connection that goes away is noticed at once, as the tables may be
    /// empty by then.
    private mutating func rest(until end: ContinuousClock.Instant) {
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
    /// A row of StoredSessions in SessionList.sql; nil for the one that stands for nobody.
    ///
    /// - Parameter now: a process that is over had them all lost by then.
    init?(_ rows: QueryResult, _ row: Int, at now: Int64) {
        guard let key = rows.text(row, 0).flatMap({ RecoveryKey(text: $0) }), let count = rows.figure(row, 1) else {
            return nil
        }
        let place = Snapshot.place(rows.text(row, 2), proven: rows.text(row, 3))
        self.init(
            key: key, count: Int(count), place: .at(place.map { .restored($0) } ?? .restart),
            lostAt: now - max(0, rows.figure(row, 4) ?? 0))
    }
}

extension SessionRegistry.Place {
    /// `follows` and `place`.
    fileprivate var column: (Bool, RecoveryPoint) {
        switch self {
        case .at(let point): (false, point)
        case .following(let mark): (true, .mark(mark))
        }
    }
}

extension Snapshot {
    /// Where those of a row stand: at its place, or at what is proven of all who follow, whichever lies further on.
    fileprivate static func place(_ text: String?, proven: String?) -> String? {
        guard let place = text.flatMap({ Snapshot($0) }) else { return nil }
        guard let proven = proven.flatMap({ Snapshot($0) }), place.precedes(proven) else { return place.text }
        return proven.text
    }
}

extension RecoveryKey {
    /// The form of a uuid, which Postgres keeps in 16 bytes.
    fileprivate var text: String { UUIDText.write(UInt128(high) << 64 | UInt128(low)) }

    fileprivate init?(text: String) {
        guard let value = UUIDText.parse(Array(text.utf8)) else { return nil }
        self.init(high: UInt64(truncatingIfNeeded: value >> 64), low: UInt64(truncatingIfNeeded: value))
    }
}
