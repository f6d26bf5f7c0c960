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
                "The queue of notifications is \(Int(usage * 100)) % full, and commits that notify fail when it is full; "
                    + "a session that listens and does not get on holds it up: "
                    + (suspect ?? "look in pg_stat_activity for the oldest xact_start") + ".")
        ]
    }
}
