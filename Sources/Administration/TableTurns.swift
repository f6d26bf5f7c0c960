import Postgres

/// Changes a table in one transaction while others use it: in short turns, with pauses that let others proceed.
struct TableTurns {
    let connection: PostgresConnection
    let patience: LockPatience
    let reporter: ProgressWaiter

    /// The limit of clashes with a trigger's name: a concurrent command may take it once.
    private static let mostClashes = 3

    /// Runs statements in a transaction, in turns, until nothing is left to do.
    ///
    /// - Parameters:
    ///   - name: the table's name, for display.
    ///   - statements: evaluated for each turn; empty when nothing is left to do.
    ///   - settle: called with the locks held, before the statements of `closing`. Returns an obstacle, if there is
    ///     one: the turn is then rolled back and tried again later.
    /// - Returns: whether anything was done.
    /// - Throws: `AdminError` if the table is in use for longer than the patience lasts.
    @discardableResult
    func changeTable(
        _ name: String, by statements: () throws -> [String], closing: [String] = [],
        settle: () throws -> Obstacle? = { nil }
    ) throws -> Bool {
        var wait = LockWait(patience)
        var clashes = 0
        var isChanged = false
        while case let due = try statements(), !due.isEmpty {
            do {
                let script = ["begin", "set local lock_timeout = '\(patience.turnText)'"] + due
                try connection.runScript(script.joined(separator: "; "), within: .seconds(30))
                if let obstacle = try settle() {
                    try connection.runScript("rollback")
                    try waitForTurn(&wait, until: obstacle)
                } else {
                    try connection.runScript((closing + ["commit"]).joined(separator: "; "), within: .seconds(30))
                    isChanged = true
                    if !closing.isEmpty { break }
                }
            } catch let error as PostgresError where error.kind == .server {
                try connection.runScript("rollback")
                switch error.sqlState {
                case SQLState.lockNotAvailable:
                    try waitForTurn(&wait, until: lockObstacle(of: name, beside: due))
                case SQLState.duplicateObject where clashes < Self.mostClashes: clashes += 1
                case SQLState.duplicateObject:
                    throw AdminError("\(error.message), and it is not roost's; rename it, and run this again.")
                default: throw error
                }
            }
        }
        return isChanged
    }

    /// A reason why a table cannot be changed yet.
    struct Obstacle {
        /// `waits for a lock of …`.
        let waiting: String
        /// A sentence without a full stop that names the obstacle and its remedy.
        let reason: String
    }

    private func lockObstacle(of name: String, beside statements: [String]) throws -> Obstacle {
        let oid = try connection.query("select to_regclass($1)::oid", [name]).text(0, 0)
        let readersCount = statements.contains { $0.hasPrefix("drop ") || $0.contains("access exclusive") }
        let holder = try LockHolder(of: oid, readersCount: readersCount, on: connection)
        return Obstacle(
            waiting: "waits for a lock held by \(holder?.description ?? "short transactions")",
            reason: "\(name) is in use by \(holder?.description ?? "many short transactions"); "
                + (holder?.remedy ?? "choose a quieter moment"))
    }

    /// - Throws: `AdminError` once the patience is exhausted.
    private func waitForTurn(_ wait: inout LockWait, until obstacle: Obstacle) throws {
        guard let pause = wait.nextPause(at: .now) else {
            throw AdminError("\(obstacle.reason), and run this again (--wait SECONDS tries for longer).")
        }
        reporter.reportProgress { $0.detail = obstacle.waiting }
        reporter.pause(pause)
        reporter.reportProgress { $0.detail = nil }
    }
}
