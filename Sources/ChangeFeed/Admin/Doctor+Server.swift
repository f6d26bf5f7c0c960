import Postgres

/// Checks of the server itself.
extension Doctor {
    static func primary(_ connection: PostgresConnection) throws -> [Finding] {
        do {
            try Primary.demand(on: connection)
        } catch let error as PostgresError where error.sqlState == nil && !connection.isBroken {
            return [Finding(.error, "primary", error.message)]
        }
        return [Finding(.good, "primary", "The server takes writes.")]
    }

    static func connections(_ connection: PostgresConnection, _ hub: ExaminedHub) throws -> [Finding] {
        let row = try connection.query(SQL.connections)
        let limits = [
            ("max_connections", row.integer(0, 0)), ("the role's limit", row.integer(0, 1)),
            ("the database's limit", row.integer(0, 2)),
        ]
        let tightest = limits.compactMap { name, free in free.map { (name, $0) } }.min { $0.1 < $1.1 }
        guard let (name, free) = tightest else { return [] }
        // Of a hub that runs, most are there already.
        let needed = row.flag(0, 4) ? 2 : hub.sessions
        guard free < Int64(needed) else {
            return [
                Finding(.good, "connections", "\(free) sessions are free, of which a hub takes up to \(hub.sessions).")
            ]
        }
        return [
            Finding(
                .warning, "connections",
                "\(max(0, free)) sessions are free by \(name), and a hub takes up to \(hub.sessions): without them "
                    + "changes, policies or presence wait; raise the limit, or have the application use a pooler.")
        ]
    }

    static func transactions(_ connection: PostgresConnection, _ limits: DoctorLimits) throws -> [Finding] {
        let rows = try connection.query(SQL.longTransactions, [String(limits.transaction.components.seconds)])
        guard rows.count > 0 else {
            return [Finding(.good, "transactions", "No transaction is open for long.")]
        }
        let others = rows.count > 1 ? " (there are \(rows.count) such)" : ""
        return [
            Finding(
                .warning, "transactions",
                "\(rows.text(0, 0) ?? "A session") has a transaction open since "
                    + "\(rows.text(0, 1) ?? "long ago")\(others), which keeps vacuum from cleaning up the outbox and "
                    + "all else; if nobody needs it, run `\(rows.text(0, 2) ?? "")`.")
        ]
    }

    /// A full queue fails the commits of all who notify. Triggers of roost's stop ringing before that; what the
    /// application itself notifies does not.
    static func queue(_ connection: PostgresConnection) throws -> [Finding] {
        let row = try connection.query(SQL.notificationQueue)
        let usage = row.text(0, 0).flatMap { Double($0) } ?? 0
        guard usage > 0.1 else { return [Finding(.good, "queue", "The queue of notifications is next to empty.")] }
        let suspect = row.text(0, 1).map { "probably \($0), which select pg_terminate_backend(…) ends" }
        return [
            Finding(
                usage > 0.5 ? .error : .warning, "queue",
                "The queue of notifications is \(Int(usage * 100)) % full, and commits that notify fail when it is "
                    + "full; a session that listens and does not get on holds it up: "
                    + (suspect ?? "look in pg_stat_activity for the oldest xact_start") + ".")
        ]
    }
}
