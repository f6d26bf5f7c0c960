package import Postgres

/// The tables, functions and triggers of Roost in a database: the schema `roost`, and what it needs of `realtime` and `auth`.
package enum RoostSchema {
    /// A step of the schema, with the name that `roost migrate` says.
    package typealias Step = (name: String, sql: String)

    /// In order; the version of the schema is their count. One that was released is never changed.
    package static let migrations: [Step] = [
        ("001 outbox", text(PackageResources.Migration001Outbox_sql)),
        ("002 triggers", text(PackageResources.Migration002Triggers_sql)),
        ("003 messages", text(PackageResources.Migration003Messages_sql)),
        ("004 scopes", text(PackageResources.Migration004Scopes_sql)),
        ("005 recovery", text(PackageResources.Migration005Recovery_sql)),
        ("006 ring", text(PackageResources.Migration006Ring_sql)),
        ("007 presence", text(PackageResources.Migration007Presence_sql)),
        ("008 push", text(PackageResources.Migration008Push_sql)),
        ("009 sessions", text(PackageResources.Migration009Sessions_sql)),
        ("010 epochs", text(PackageResources.Migration010Epochs_sql)),
        ("011 rows", text(PackageResources.Migration011Rows_sql)),
        ("012 losses", text(PackageResources.Migration012Losses_sql)),
        ("013 order", text(PackageResources.Migration013Order_sql)),
    ]

    /// What `roost migrate` creates outside its own schema where it is missing; they run after the migrations, each time.
    package static let installations: [Step] = [
        ("realtime", text(PackageResources.InstallRealtime_sql)),
        ("trigger on realtime.messages", text(PackageResources.InstallMessageTrigger_sql)),
        ("claims", text(PackageResources.InstallClaims_sql)),
    ]

    /// What this binary works with.
    package static var currentVersion: Int { migrations.count }

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
        case let version? where version < currentVersion:
            throw PostgresError(
                .server,
                "The schema roost is version \(version), this hub needs \(currentVersion); run `roost migrate`.")
        case let version? where version > currentVersion:
            throw PostgresError(.server, newer(version))
        default: break
        }
    }

    /// What is said of a schema that is newer than this binary.
    package static func newer(_ version: Int) -> String {
        "The schema roost is version \(version), newer than this hub's \(currentVersion); install a newer roost, whose "
            + "`roost migrate` knows it."
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// Which version of the schema a database has.
package enum SchemaSQL: String, NamedStatement {
    case schemaExists, installedVersion
    package static let file = StatementFile(PackageResources.Schema_sql)
}
