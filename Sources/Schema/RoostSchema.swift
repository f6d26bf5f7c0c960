package import Postgres

/// The tables, functions and triggers of Roost in a database: the schema `roost`, and what it needs of `realtime` and `auth`.
package enum RoostSchema {
    /// A step of the schema, with the name that `roost migrate` says.
    package typealias Step = (name: String, sql: String)

    /// In order; the version of the schema is their count. One that was released is never changed.
    package static let migrations: [Step] = [
        ("001 outbox", SQLFile.text("Migration001Outbox.sql")),
        ("002 triggers", SQLFile.text("Migration002Triggers.sql")),
        ("003 messages", SQLFile.text("Migration003Messages.sql")),
        ("004 scopes", SQLFile.text("Migration004Scopes.sql")),
        ("005 recovery", SQLFile.text("Migration005Recovery.sql")),
        ("006 ring", SQLFile.text("Migration006Ring.sql")),
        ("007 presence", SQLFile.text("Migration007Presence.sql")),
        ("008 push", SQLFile.text("Migration008Push.sql")),
        ("009 sessions", SQLFile.text("Migration009Sessions.sql")),
        ("010 epochs", SQLFile.text("Migration010Epochs.sql")),
        ("011 rows", SQLFile.text("Migration011Rows.sql")),
        ("012 losses", SQLFile.text("Migration012Losses.sql")),
        ("013 order", SQLFile.text("Migration013Order.sql")),
        ("014 capture", SQLFile.text("Migration014Capture.sql")),
        ("015 scopes", SQLFile.text("Migration015Scopes.sql")),
        ("016 watched", SQLFile.text("Migration016Watched.sql")),
        ("017 streams", SQLFile.text("Migration017Streams.sql")),
        ("018 cluster", SQLFile.text("Migration018Cluster.sql")),
        ("019 places", SQLFile.text("Migration019Places.sql")),
        ("020 unread", SQLFile.text("Migration020Unread.sql")),
        ("021 receipts", SQLFile.text("Migration021Receipts.sql")),
        ("022 timed", SQLFile.text("Migration022Timed.sql")),
        ("023 pushes", SQLFile.text("Migration023Pushes.sql")),
        ("024 moves", SQLFile.text("Migration024Moves.sql")),
        ("025 notify", SQLFile.text("Migration025Notify.sql")),
        ("026 reading", SQLFile.text("Migration026Reading.sql")),
        ("027 persistence", SQLFile.text("Migration027Persistence.sql")),
        ("028 texts", SQLFile.text("Migration028Texts.sql")),
        ("029 deletions", SQLFile.text("Migration029Deletions.sql")),
        ("030 kinds of pushes", SQLFile.text("Migration030PushKinds.sql")),
    ]

    /// What `roost migrate` creates outside its own schema where it is missing; they run after the migrations, each time.
    package static let installations: [Step] = [
        ("realtime", SQLFile.text("InstallRealtime.sql")),
        ("trigger on realtime.messages", SQLFile.text("InstallMessageTrigger.sql")),
        ("claims", SQLFile.text("InstallClaims.sql")),
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
}

/// Which version of the schema a database has.
package enum SchemaSQL: String, NamedStatement {
    case schemaExists, installedVersion
    package static let file = StatementFile("Schema.sql")
}
