import Hub
import Logging
import Matching
import Postgres
import Workers

/// The session for clients' filters: one statement at a time, each with its own time limit.
///
/// It is opened for the first question, and is not the feed's session: that is in the middle of a window then, and a
/// client's filter must not cost the feed its session. Used by one thread at a time, which waits for it.
struct ConditionSession: ~Copyable {
    enum Reply {
        /// One answer for each condition.
        case answered([Bool])
        case outOfTime
        /// A value cannot be read, or an operator is gone: the table was altered meanwhile.
        case failed(PostgresError)
        /// The session ended during it, twice, or once if asked apart.
        case endedSession
    }

    private let conninfo: String
    private let limits: ConditionLimits
    private let logger: Logger
    private var connection: PostgresConnection?
    /// Consecutive sessions that ended during a statement. Kept while the server is away: a filter may have crashed it.
    private var losses = 0
    /// Since when statements wait for locks, and when the last one did.
    private var locked: (since: ContinuousClock.Instant, last: ContinuousClock.Instant)?
    /// A wait that recurs after this time counts as a new one.
    private static let lockMemory = Duration.seconds(30)

    init(conninfo: String, limits: ConditionLimits, logger: Logger) {
        self.conninfo = conninfo
        self.limits = limits
        self.logger = logger
    }

    /// Decides conditions in a single statement.
    ///
    /// - Parameter areApart: true if they are of one filter, after all filters together have ended sessions or hung.
    /// - Throws: `PostgresError` if the database does not answer, or if a table is locked and has not been for long:
    ///   filters that wait for a lock must not delay all others for ever.
    mutating func askConditions(
        _ conditions: [PostgresCondition], within limit: Duration, areApart: Bool = false
    ) throws -> Reply {
        let batch = PostgresBatch(conditions)
        // An open session may have been ended from outside while it was idle.
        let most = areApart && connection == nil ? 1 : 2
        if areApart { losses = 0 }
        do {
            let result = try runStatement(batch.sql, within: limit, upTo: most)
            losses = 0
            if !areApart { locked = nil }
            let rows = (0..<result.count).map { row in
                (record: Int(result.integer(row, 0) ?? 0), answers: result.text(row, 1) ?? "")
            }
            return .answered(batch.parseAnswers(rows))
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

    /// Runs the question of a `SubscriptionBinder` about a new filter's values, and returns rows of texts.
    ///
    /// - Throws: `PostgresError` of kind `server` if a value is refused; the other kinds say nothing about it.
    mutating func validateValues(_ statement: String) throws -> [[String?]] {
        do {
            let rows = try runStatement(statement, within: limits.validation)
            return (0..<rows.count).map { row in (0..<rows.width).map { rows.text(row, $0) } }
        } catch let error as PostgresError where error.sqlState == SQLState.lockNotAvailable {
            throw PostgresError(.timeout, sqlState: error.sqlState, error.message)
        } catch let error as PostgresError where error.sqlState == SQLState.queryCanceled {
            throw PostgresError(.server, sqlState: error.sqlState, "it takes too long to read")
        }
    }

    /// Runs a statement together with its time limit, in one round trip.
    ///
    /// Tries once more if the session ends during it: an idle session may have been ended from outside, which shows only
    /// now.
    ///
    /// - Parameter most: number of ended sessions at which it does not try again.
    private mutating func runStatement(_ sql: String, within limit: Duration, upTo most: Int = .max) throws
        -> QueryResult
    {
        let milliseconds = max(10, limit.milliseconds)
        let statement = "set statement_timeout = \(milliseconds); set lock_timeout = \(milliseconds * 4 / 5); \(sql)"
        var isSecond = false
        while true {
            let session = try openConnection()
            defer { if session.isBroken { connection = nil } }
            do {
                return try session.runScript(statement, within: limit + limits.network)
            } catch let error as PostgresError where error.kind == .connection {
                losses = min(losses + 1, 2)
                guard losses < most, !isSecond else { throw error }
                isSecond = true
            }
        }
    }

    /// - Throws: `PostgresError` if Postgres takes long for everything, which is no filter's fault.
    mutating func demandQuickAnswer() throws {
        do {
            _ = try runStatement("select 1", within: .milliseconds(500))
        } catch let error as PostgresError where error.kind == .server {
            throw PostgresError(.timeout, "Postgres is too busy to decide filters: \(error.message)")
        }
    }

    private mutating func openConnection() throws -> PostgresConnection {
        if let connection, !connection.isBroken { return connection }
        let fresh = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(), logger: logger, within: limits.network)
        try fresh.runScript(FeedSQL.sessionOfConditions, within: limits.network)
        try AbandonedStatements.shared.demandFew(on: fresh)
        connection = fresh
        return fresh
    }
}
