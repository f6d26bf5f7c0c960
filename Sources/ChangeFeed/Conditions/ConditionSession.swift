import Hub
import Logging
import Matching
import Postgres
import Workers

/// The session that clients' filters are asked on: one statement at a time, each with a time of its own.
///
/// It is opened at the first question, and is not the feed's: that one is in the middle of a window then, and what clients
/// ask for must not cost the feed its session. Used by one thread at a time, which waits for it.
struct ConditionSession: ~Copyable {
    enum Reply {
        /// One answer for each condition.
        case answered([Bool])
        case outOfTime
        /// A value cannot be read, an operator is gone: the table was altered meanwhile.
        case failed(PostgresError)
        /// The session ended at it, twice, or once where it is asked apart.
        case endedSession
    }

    private let conninfo: String
    private let limits: ConditionLimits
    private let logger: Logger
    private var connection: PostgresConnection?
    /// Sessions that ended at a statement, one after the other. Kept while the server is away: it may be that which a filter
    /// has crashed.
    private var losses = 0
    /// Since when statements wait for locks, and when the last did.
    private var locked: (since: ContinuousClock.Instant, last: ContinuousClock.Instant)?
    /// A wait that came back after so long is another one.
    private static let lockMemory = Duration.seconds(30)

    init(conninfo: String, limits: ConditionLimits, logger: Logger) {
        self.conninfo = conninfo
        self.limits = limits
        self.logger = logger
    }

    /// Decides conditions, all by one statement.
    ///
    /// - Parameter areApart: they are of one filter, and all of them together have ended sessions already, or hung.
    /// - Throws: `PostgresError` where the database does not answer, or a table is locked, and has not been for long: those whose
    ///   filters wait for it must not keep all others' for ever.
    mutating func ask(
        _ conditions: [PostgresCondition], within limit: Duration, areApart: Bool = false
    ) throws -> Reply {
        let batch = PostgresBatch(conditions)
        // One that was open may have been ended by somebody while nothing was asked.
        let most = areApart && connection == nil ? 1 : 2
        if areApart { losses = 0 }
        do {
            let result = try run(batch.sql, within: limit, upTo: most)
            losses = 0
            if !areApart { locked = nil }
            let rows = (0..<result.count).map { row in
                (record: Int(result.integer(row, 0) ?? 0), answers: result.text(row, 1) ?? "")
            }
            return .answered(batch.answers(rows))
        } catch let error as PostgresError {
            switch (error.kind, error.sqlState) {
            case (.server, SQLState.queryCanceled), (.timeout, _): return .outOfTime
            case (.server, SQLState.lockNotAvailable), (.server, SQLState.deadlock):
                if isLockedForLong(at: .now) { return .outOfTime }
                throw PostgresError(
                    .timeout, sqlState: error.sqlState, "A filter waits for a lock (\(error.message)).")
            case (.server, _): return .failed(error)
            case (.connection, _) where losses >= most:
                losses = 0
                return .endedSession
            case (.connection, _): throw error
            }
        }
    }

    private mutating func isLockedForLong(at now: ContinuousClock.Instant) -> Bool {
        let since = locked.flatMap { $0.last + Self.lockMemory > now ? $0.since : nil } ?? now
        locked = (since, now)
        return now - since >= limits.locks
    }

    /// What `SubscriptionBinder` has to ask of a new filter's values: rows of texts.
    ///
    /// - Throws: `PostgresError` of kind `server` where a value is refused; the other kinds say nothing about it.
    mutating func validate(_ statement: String) throws -> [[String?]] {
        do {
            let rows = try run(statement, within: limits.validation)
            return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
        } catch let error as PostgresError where error.sqlState == SQLState.lockNotAvailable {
            throw PostgresError(.timeout, sqlState: error.sqlState, error.message)
        } catch let error as PostgresError where error.sqlState == SQLState.queryCanceled {
            throw PostgresError(.server, sqlState: error.sqlState, "it takes too long to read")
        }
    }

    /// A statement that is given its time along with it, in one round trip.
    ///
    /// Once more where the session ends at it: somebody may have ended it while nothing was asked, which shows only now.
    ///
    /// - Parameter most: not where so many sessions have ended by then.
    private mutating func run(_ sql: String, within limit: Duration, upTo most: Int = .max) throws -> QueryResult {
        let milliseconds = max(10, limit.milliseconds)
        let statement = "set statement_timeout = \(milliseconds); set lock_timeout = \(milliseconds * 4 / 5); \(sql)"
        var isSecond = false
        while true {
            let session = try open()
            defer { if session.isBroken { connection = nil } }
            do {
                return try session.run(statement, within: limit + limits.network)
            } catch let error as PostgresError where error.kind == .connection {
                losses = min(losses + 1, 2)
                guard losses < most, !isSecond else { throw error }
                isSecond = true
            }
        }
    }

    /// - Throws: `PostgresError` where Postgres takes long for everything: that is no filter's fault.
    mutating func demandQuickAnswer() throws {
        do {
            _ = try run("select 1", within: .milliseconds(500))
        } catch let error as PostgresError where error.kind == .server {
            throw PostgresError(.timeout, "Postgres is too busy to decide filters: \(error.message)")
        }
    }

    private mutating func open() throws -> PostgresConnection {
        if let connection, !connection.isBroken { return connection }
        let fresh = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(), logger: logger, within: limits.network)
        try fresh.run(FeedSQL.sessionOfConditions, within: limits.network)
        try AbandonedStatements.shared.demandFew(on: fresh)
        connection = fresh
        return fresh
    }
}
