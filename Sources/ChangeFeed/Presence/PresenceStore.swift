import Hub
import Logging
import Postgres

/// Writes what the log says to `roost.presence`.
struct PresenceStore: ~Copyable {
    private let node: String
    private let log: PresenceLog
    private let firstRetry: Duration
    /// The table may say anything: what is there no more is to be deleted, and all that is there to be written.
    private var isFromTheStart = true
    private var backoff: Backoff
    private var retryAt: ContinuousClock.Instant?

    /// Written by one statement.
    private static let batch = 2000
    /// Of payloads in one statement that has more than one.
    private static let batchBytes = 2_000_000
    /// Statements in one beat: more than one only where many have come or gone at once.
    private static let batchesInBeat = 5

    init(node: String, log: PresenceLog, firstRetry: Duration) {
        self.node = node
        self.log = log
        self.firstRetry = firstRetry
        backoff = Backoff(first: firstRetry)
    }

    /// The connection is another: whatever happened to the table meanwhile, it is to be right again.
    mutating func begin() {
        isFromTheStart = true
        retryAt = nil
    }

    /// Writes what waits.
    ///
    /// - Parameter isLast: however much it is, and whatever failed a moment ago.
    /// - Returns: whether all that waited at the start is written.
    /// - Throws: `PostgresError` where the connection is to be given up.
    mutating func write(
        on connection: PostgresConnection, isLast: Bool, _ statistics: inout PresenceStatistics,
        _ complaints: inout RateLimitedLog
    ) throws -> Bool {
        if let retryAt, retryAt > .now, !isLast { return false }
        do {
            if isFromTheStart { try startAnew(on: connection) }
            let isAllWritten = try writeBatches(
                isLast ? .max : Self.batchesInBeat, on: connection, &statistics, &complaints)
            backoff = Backoff(first: firstRetry)
            retryAt = nil
            return isAllWritten
        } catch let error as PostgresError where !connection.isBroken {
            statistics.failures += 1
            complaints.note("Who is present is not written to roost.presence for now: \(error.message)")
            isFromTheStart = true
            retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
            return false
        }
    }

    private mutating func startAnew(on connection: PostgresConnection) throws {
        log.takeFromTheStart()
        let all = log.take()
        // Whatever comes of it, they are to be written.
        defer { log.giveBack(all) }
        var refs = TextArray()
        for change in all { refs.append(change.ref.utf8) }
        _ = try connection.query(SQL.forgetPresence, [node, refs.literal])
        isFromTheStart = false
    }

    private func writeBatches(
        _ count: Int, on connection: PostgresConnection, _ statistics: inout PresenceStatistics,
        _ complaints: inout RateLimitedLog
    ) throws -> Bool {
        for _ in 0..<count {
            let changes = log.take(upTo: Self.batch)
            guard !changes.isEmpty else { return true }
            do {
                try store(changes[...], on: connection, &statistics, &complaints)
            } catch {
                log.giveBack(changes)
                throw error
            }
            if changes.count < Self.batch { return true }
        }
        return false
    }

    /// Where Postgres refuses some values, as a database of another encoding than UTF-8 may, the others are written all the
    /// same.
    private func store(
        _ changes: ArraySlice<PresenceLog.Change>, on connection: PostgresConnection,
        _ statistics: inout PresenceStatistics, _ complaints: inout RateLimitedLog
    ) throws {
        let bytes = changes.reduce(0) { $0 + ($1.record?.payload.count ?? 0) }
        if bytes <= Self.batchBytes || changes.count == 1 {
            do {
                _ = try connection.query(SQL.storePresence, PresenceBatch(changes).parameters(of: node))
                statistics.batches += 1
                statistics.rows += changes.count
                return
            } catch let error as PostgresError where error.isAboutValues {
                guard changes.count > 1 else {
                    statistics.refusedRows += 1
                    return complaints.note(
                        "Postgres refuses some presences, which are therefore not there after a restart: \(error.message)"
                    )
                }
            }
        }
        let middle = changes.startIndex + changes.count / 2
        try store(changes[..<middle], on: connection, &statistics, &complaints)
        try store(changes[middle...], on: connection, &statistics, &complaints)
    }
}

extension PostgresError {
    /// Class 22 (data exception) and 54 (a value is too large): another row may well be taken.
    fileprivate var isAboutValues: Bool {
        guard kind == .server, let sqlState else { return false }
        return sqlState.hasPrefix("22") || sqlState.hasPrefix("54")
    }
}
