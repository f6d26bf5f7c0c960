import Postgres

/// What writing users' status needs.
extension Doctor {
    /// Whether the configured statement would work, without running it. Never throws: what fails is a finding.
    ///
    /// - Parameter statement: `users.statement`.
    package static func examine(usersStatement statement: String, conninfo: String) -> [Finding] {
        do {
            let connection = try AdminSession.open(conninfo)
            return [try users(statement, connection)]
        } catch {
            return [Finding(.error, "users", "The check failed: \(error).")]
        }
    }

    private static func users(_ statement: String, _ connection: PostgresConnection) throws -> Finding {
        func plan() throws { _ = try connection.query("explain \(statement)", ["{}", "{}", "{}"]) }
        do {
            try plan()
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .error, "users",
                "users.statement does not work, so nobody's status is written (\(error.message)); correct it, or grant "
                    + "what it needs.")
        }
        try connection.run("set row_security = off")
        do {
            try plan()
        } catch let error as PostgresError where error.kind == .server {
            return Finding(
                .warning, "users",
                "Row level security applies to users.statement (\(error.message)): users whom its policies do not show "
                    + "to the hub's role are passed over; give the role BYPASSRLS, or a policy for all of them.")
        }
        return Finding(.good, "users", "users.statement fits the database.")
    }
}
