package import Logging
package import Postgres

/// Decides as Postgres' row level security would which rows a user may see or write.
///
/// It asks the table's own policies about the row as the change has it, as the user's role and with the settings that
/// PostgREST makes of a token. The row itself is not looked up: it may have changed again, and a version that was
/// hidden must not be shown because a later one is not.
///
/// - Whatever cannot be decided is hidden, and from those alone whom it cannot be decided for.
/// - A policy sees a JSON null in a column as SQL's null: in a record both look alike. A policy that reads system
///   columns (`ctid`, `tableoid`) cannot be asked, and hides everything.
/// - Confined to one thread, on which it waits. It owns its connection: opened with the first question, and again where
///   it was lost.
package struct PolicyEngine: ~Copyable {
    private let conninfo: String
    private let logger: Logger
    private let limits: PolicyLimits
    private var session: PolicySession?
    private var version: String?

    package init(conninfo: String, logger: Logger) {
        self.init(conninfo: conninfo, logger: logger, limits: PolicyLimits())
    }

    /// - Parameter limits: how long policies may think.
    package init(conninfo: String, logger: Logger, limits: PolicyLimits) {
        self.conninfo = conninfo
        self.logger = logger
        self.limits = limits
    }

    /// One answer for each question, all in one round trip where nothing has to be looked up in the catalog.
    ///
    /// A session that was lost since the last questions is replaced here and now: the caller may be the feed, which would
    /// take the loss for its own and begin anew.
    ///
    /// - Parameter version: differs whenever a table, a policy, a role or a privilege does: what was looked up under
    ///   another is forgotten. Between a change and the new version the old policies answer.
    /// - Throws: `PostgresError` of kind `connection` or `timeout` where nothing is decided, as the database is away or
    ///   a table that the policies read is locked against reading. Ask again then.
    package mutating func answers(
        to questions: [PolicyQuestion], version: String
    ) throws(PostgresError) -> [PolicyAnswer] {
        let wasOpen = session != nil
        do {
            let session = try open(version)
            do {
                return try session.answers(to: questions)
            } catch let error as PostgresError where error.kind == .timeout && session.isBroken && questions.count > 1 {
                let fresh = try open(version)
                return try questions.flatMap { try fresh.answers(to: [$0]) }
            }
        } catch let error as PostgresError {
            let isLost = error.kind != .timeout && session?.isBroken == true
            // A refusal that nobody expected leaves a session in an unknown state.
            if error.kind != .timeout || session?.isBroken == true { session = nil }
            // Somebody ended it while nothing was asked, which shows only now. Once: the session is a new one then.
            if isLost, wasOpen { return try answers(to: questions, version: version) }
            throw error.kind == .server
                ? PostgresError(.connection, sqlState: error.sqlState, error.message) : error
        } catch {
            session = nil
            throw PostgresError(.connection, "\(error)")
        }
    }

    /// Ends the session; the next question opens another.
    package mutating func close() { session = nil }

    private mutating func open(_ version: String) throws -> PolicySession {
        if let session, !session.isBroken, self.version == version { return session }
        if let session, !session.isBroken {
            try session.forget()
            self.version = version
            return session
        }
        let fresh = try PolicySession(conninfo: conninfo, logger: logger, limits: limits)
        session = fresh
        self.version = version
        return fresh
    }
}

/// How long policies may think. A feed waits for them, and everybody's changes with it.
package struct PolicyLimits: Sendable {
    /// One question, all its subjects.
    package var question = Duration.seconds(2)
    /// One subject, where its question took longer.
    package var subject = Duration.milliseconds(250)
    /// All the subjects of a question that took longer; who is not reached sees nothing.
    package var subjects = Duration.seconds(2)
    /// Questions that are asked together, beyond which each is asked alone, on a connection of its own: a session that
    /// hangs looks like one that has much to think about.
    package var together = Duration.seconds(3)
    /// What connecting, the network and the catalog may take on top.
    package var network = Duration.seconds(5)

    package init() {}
}
