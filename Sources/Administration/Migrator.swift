import ChangeFeed
import Postgres
import Schema

/// Installs and upgrades the schema `roost`.
package enum Migrator {
    package struct Outcome: Sendable, Equatable {
        /// 0 if there was no schema.
        package let from: Int
        package let to: Int
    }

    /// The whole setup for an empty database, as a script for psql.
    package static var script: String {
        transactionScript(
            (RoostSchema.base + RoostSchema.migrations).map(section)
                + ["update roost.meta set schema_version = \(RoostSchema.currentVersion);\n"]
                + RoostSchema.installations.map(section))
    }

    private static func section(_ step: RoostSchema.Step) -> String { "-- \(step.name)\n\(step.sql)" }

    private static func transactionScript(_ steps: [String]) -> String {
        "begin;\n\n" + steps.joined(separator: "\n") + "\ncommit;\n"
    }

    /// Brings the schema to `RoostSchema.currentVersion` in one transaction. Simultaneous migrations run one after the
    /// other.
    ///
    /// Also creates missing parts of `realtime` and `auth`, and the trigger on `realtime.messages`; parts that this
    /// role may not create are left to `roost doctor` to report. Needs the right to create a schema in the database, or
    /// ownership of an empty schema `roost`.
    /// - Throws: `AdminError`, also if the schema is newer than this binary, or too old for it.
    @discardableResult
    package static func migrate(
        conninfo: String, patience: LockPatience = LockPatience(), progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> Outcome {
        try runCommand("migrate") {
            let reporter = ProgressWaiter("migrating", conninfo: conninfo, listener: progress)
            let connection = try AdminSession.openConnection(conninfo, reporter: reporter)
            var wait = LockWait(patience)
            while true {
                do {
                    return try migrate(connection, patience, reporter)
                } catch let error as PostgresError where error.sqlState == SQLState.lockNotAvailable {
                    try connection.runScript("rollback")
                    try waitForLock(&wait, connection, reporter)
                }
            }
        }
    }

    /// Makes one attempt. If a table is in use, it throws, and the transaction has failed.
    private static func migrate(
        _ connection: PostgresConnection, _ patience: LockPatience, _ reporter: ProgressWaiter
    ) throws -> Outcome {
        try connection.runScript("begin")
        try awaitTurn(connection, patience, reporter)
        try connection.runScript("set local lock_timeout = '\(patience.turnText)'")
        let version = try RoostSchema.installedVersion(on: connection) ?? 0
        guard version <= RoostSchema.currentVersion else { throw AdminError(RoostSchema.newer(version)) }
        guard version == 0 || version >= RoostSchema.baseVersion else { throw AdminError(RoostSchema.tooOld(version)) }
        let steps =
            version == 0
            ? RoostSchema.base + RoostSchema.migrations
            : Array(RoostSchema.migrations.dropFirst(version - RoostSchema.baseVersion))
        // Interruptions of the capture until now are recorded before the capture is reset.
        if !steps.isEmpty, version > 0 { try connection.runScript("select roost.note_captures()") }
        for (done, step) in steps.enumerated() {
            reporter.reportProgress { progress in
                progress.task = "migrating: \(step.name)"
                (progress.done, progress.total) = (done, steps.count)
            }
            try connection.runScript(step.sql, within: .seconds(600))
        }
        if !steps.isEmpty {
            try connection.runScript("update roost.meta set schema_version = \(RoostSchema.currentVersion)")
        }
        // Trigger functions may have changed: the state of each table's capture is determined again (SchemaCapture.sql).
        if !steps.isEmpty { try connection.runScript("delete from roost.captured") }
        for installation in RoostSchema.installations {
            reporter.reportProgress { progress in
                progress.task = "installing: \(installation.name)"
                (progress.done, progress.total) = (0, 0)
            }
            try connection.runScript(installation.sql)
        }
        try connection.runScript("commit")
        return Outcome(from: version, to: RoostSchema.currentVersion)
    }

    /// Waits for other migrations, which blocks no other sessions. Any role that may connect to the database can hold
    /// the lock.
    ///
    /// - Throws: `AdminError` once the patience is exhausted.
    private static func awaitTurn(
        _ connection: PostgresConnection, _ patience: LockPatience, _ reporter: ProgressWaiter
    ) throws {
        do {
            _ = try connection.query(
                "select pg_advisory_xact_lock($1::int4, 0)", [DoorbellSession.lockClass],
                within: max(patience.total, .seconds(1)))
        } catch let error as PostgresError where error.kind == .timeout {
            throw AdminError(
                "The lock by which migrations take turns is held by \(reporter.holder?.description ?? "another session"); "
                    + "\(reporter.holder?.remedy ?? "see pg_locks"), and run this again.")
        }
    }

    /// - Throws: `AdminError` once the patience is exhausted.
    private static func waitForLock(
        _ wait: inout LockWait, _ connection: PostgresConnection, _ reporter: ProgressWaiter
    )
        throws
    {
        let holder = try LockHolder(of: nil, readersCount: true, on: connection)
        guard let pause = wait.nextPause(at: .now) else {
            throw AdminError(
                "Roost's tables are in use by \(holder?.description ?? "many short transactions"); "
                    + "\(holder?.remedy ?? "choose a quieter moment"), and run this again.")
        }
        reporter.reportProgress {
            $0.detail = "waits for a lock held by \(holder?.description ?? "short transactions")"
        }
        reporter.pause(pause)
        reporter.reportProgress { $0.detail = nil }
    }
}
