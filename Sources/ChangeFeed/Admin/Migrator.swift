import Postgres

/// Installs and upgrades the schema `roost`.
package enum Migrator {
    package struct Outcome: Sendable, Equatable {
        /// 0 where there was no schema.
        package let from: Int
        package let to: Int
    }

    /// What this binary works with.
    package static var currentVersion: Int { SQL.migrations.count }

    /// The whole set-up for an empty database, as a script for psql.
    package static var script: String {
        transaction(steps(upTo: currentVersion) + SQL.installations.map { "-- \($0.name)\n\($0.sql)" })
    }

    /// The schema roost alone as an older version left it, for tests of upgrades.
    package static func script(upTo version: Int) -> String { transaction(steps(upTo: version)) }

    private static func steps(upTo version: Int) -> [String] {
        SQL.migrations.prefix(version).enumerated().map { index, migration in
            "-- \(migration.name)\n\(migration.sql)\nupdate roost.meta set schema_version = \(index + 1);\n"
        }
    }

    private static func transaction(_ steps: [String]) -> String {
        "begin;\n\n" + steps.joined(separator: "\n") + "\ncommit;\n"
    }

    /// Brings the schema to `currentVersion` in one transaction; two at once run one after the other.
    ///
    /// Also creates what is missing of `realtime` and `auth`, and the trigger on `realtime.messages`; what of that this
    /// role may not do is left to `roost doctor` to report. Needs the right to create a schema in the database, or to own
    /// an empty schema `roost`.
    /// - Throws: `AdminError`, also where the schema is newer than this binary.
    @discardableResult
    package static func migrate(
        conninfo: String, patience: LockPatience = LockPatience(), progress: @escaping AdminProgress.Listener = { _ in }
    ) throws -> Outcome {
        try administer("migrate") {
            let teller = AdminTeller("migrating", conninfo: conninfo, listener: progress)
            let connection = try AdminSession.open(conninfo, teller: teller)
            var wait = LockWait(patience)
            while true {
                do {
                    return try migrate(connection, patience, teller)
                } catch let error as PostgresError where error.sqlState == SQLState.lockNotAvailable {
                    try connection.run("rollback")
                    try rest(&wait, connection, teller)
                }
            }
        }
    }

    /// One try. Where a table is in use, the transaction has failed.
    private static func migrate(
        _ connection: PostgresConnection, _ patience: LockPatience, _ teller: AdminTeller
    ) throws -> Outcome {
        try connection.run("begin")
        // This one keeps nobody else waiting.
        _ = try connection.query(
            "select pg_advisory_xact_lock($1::int4, 0)", [DoorbellSession.lockClass], within: .seconds(60))
        try connection.run("set local lock_timeout = '\(patience.turnText)'")
        let version = try installedVersion(on: connection) ?? 0
        guard version <= currentVersion else { throw AdminError(newer(version)) }
        let migrations = Array(SQL.migrations.enumerated()).dropFirst(version)
        for (index, migration) in migrations {
            teller.tell { progress in
                progress.task = "migrating: \(migration.name)"
                (progress.done, progress.total) = (index - version, migrations.count)
            }
            try connection.run(migration.sql, within: .seconds(600))
            try connection.run("update roost.meta set schema_version = \(index + 1)")
        }
        for installation in SQL.installations {
            teller.tell { progress in
                progress.task = "installing: \(installation.name)"
                (progress.done, progress.total) = (0, 0)
            }
            try connection.run(installation.sql)
        }
        try connection.run("commit")
        return Outcome(from: version, to: currentVersion)
    }

    /// - Throws: `AdminError` where the patience is over.
    private static func rest(_ wait: inout LockWait, _ connection: PostgresConnection, _ teller: AdminTeller) throws {
        let holder = try LockHolder(of: nil, readersCount: true, on: connection)
        guard let pause = wait.next(at: .now) else {
            throw AdminError(
                "Roost's tables are in use by \(holder?.description ?? "many short transactions"); "
                    + "\(holder?.remedy ?? "choose a quieter moment"), and run this again.")
        }
        teller.tell { $0.detail = "waits for a lock of \(holder?.description ?? "short transactions")" }
        teller.pause(pause)
        teller.tell { $0.detail = nil }
    }

    /// - Returns: nil where roost was never migrated.
    static func installedVersion(on connection: PostgresConnection) throws -> Int? {
        guard try connection.query(SQL.schemaExists).flag(0, 0) else { return nil }
        return try connection.query(SQL.schemaVersion).integer(0, 0).map { Int($0) }
    }

    /// - Throws: `PostgresError` with the sentence that says what to run.
    static func demandCurrentSchema(on connection: PostgresConnection) throws {
        switch try installedVersion(on: connection) {
        case nil:
            throw PostgresError(.server, "The database has no schema roost; run `roost migrate`.")
        case let version? where version < currentVersion:
            throw PostgresError(
                .server,
                "The schema roost is version \(version), this hub needs \(currentVersion); run `roost migrate`.")
        case let version? where version > currentVersion:
            throw PostgresError(.server, newer(version))
        default: break
        }
    }

    private static func newer(_ version: Int) -> String {
        "The schema roost is version \(version), newer than this hub's \(currentVersion); install a newer roost, whose "
            + "`roost migrate` knows it."
    }
}
