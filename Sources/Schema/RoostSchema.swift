package import Postgres

/// The tables, functions and triggers of Roost in a database: the schema `roost`, and what it needs of `realtime` and `auth`.
package enum RoostSchema {
    /// A step of the schema, with the name that `roost migrate` says.
    package typealias Step = (name: String, sql: String)

    /// The schema of `baseVersion`, one file for each concept, in the order of what they need of each other.
    package static let base: [Step] = [
        ("outbox", SQLFile.text("SchemaOutbox.sql")),
        ("rows", SQLFile.text("SchemaRows.sql")),
        ("order of changes", SQLFile.text("SchemaOrder.sql")),
        ("triggers", SQLFile.text("SchemaTriggers.sql")),
        ("messages", SQLFile.text("SchemaMessages.sql")),
        ("recovery", SQLFile.text("SchemaRecovery.sql")),
        ("sessions", SQLFile.text("SchemaSessions.sql")),
        ("capture", SQLFile.text("SchemaCapture.sql")),
        ("visibility", SQLFile.text("SchemaVisibility.sql")),
        ("presence", SQLFile.text("SchemaPresence.sql")),
        ("push", SQLFile.text("SchemaPush.sql")),
        ("notify", SQLFile.text("SchemaNotify.sql")),
        ("streams", SQLFile.text("SchemaStreams.sql")),
    ]

    /// Versions below are of builds from before the first release, and are not upgraded. The release begins anew with 1.
    package static let baseVersion = 29

    /// Steps from `baseVersion` to `currentVersion`, in order. One that was released is never changed.
    package static let migrations: [Step] = [
        ("030 kinds of pushes", SQLFile.text("Migration030PushKinds.sql"))
    ]

    /// Objects outside its own schema that `roost migrate` creates if they are missing; they run after the migrations, each time.
    package static let installations: [Step] = [
        ("realtime", SQLFile.text("InstallRealtime.sql")),
        ("trigger on realtime.messages", SQLFile.text("InstallMessageTrigger.sql")),
        ("claims", SQLFile.text("InstallClaims.sql")),
    ]

    /// The version that this binary works with.
    package static var currentVersion: Int { baseVersion + migrations.count }

    /// - Returns: nil where roost was never migrated.
    /// - Throws: `PostgresError`.
    package static func installedVersion(on connection: PostgresConnection) throws -> Int? {
        guard try connection.query(SchemaSQL.schemaExists).flag(0, 0) else { return nil }
        return try connection.query(SchemaSQL.installedVersion).integer(0, 0).map { Int($0) }
    }

    /// - Throws: `PostgresError` with the sentence that says what to run.
    package static func demandCurrent(on connection: PostgresConnection) throws {
        switch try installedVersion(on: connection) {
        case nil:
            throw PostgresError(.server, "The database has no schema roost; run `roost migrate`.")
        case let version? where version < baseVersion:
            throw PostgresError(.server, tooOld(version))
        case let version? where version < currentVersion:
            throw PostgresError(
                .server,
                "The schema roost is version \(version), this hub needs \(currentVersion); run `roost migrate`.")
        case let version? where version > currentVersion:
            throw PostgresError(.server, newer(version))
        default: break
        }
    }

    /// The sentence about a schema of a build from before the first release.
    package static func tooOld(_ version: Int) -> String {
        "The schema roost is version \(version), of a build from before the first release, and cannot be upgraded; run "
            + "`drop schema roost cascade` in the database, then `roost migrate` and `roost watch`."
    }

    /// The sentence about a schema that is newer than this binary.
    package static func newer(_ version: Int) -> String {
        "The schema roost is version \(version), newer than this hub's \(currentVersion); install a newer roost, whose "
            + "`roost migrate` knows it."
    }
}

/// Which version of the schema a database has.
package enum SchemaSQL: String, NamedStatement {
    case schemaExists, installedVersion
    package static let file = StatementFile("Schema.sql")
}
