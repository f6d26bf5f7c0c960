import ChangeFeed
import Postgres

/// Reads a table as users would, to find policies that fail: the hub shows nothing to users for whom they fail.
///
/// Selects rows in the roles that tokens name, with the claims of users found in the table or in the members tables of
/// its scope, and of one unknown user, in a read-only transaction that is rolled back.
struct PolicySample {
    /// A failure of the policies for a role.
    struct Failure {
        let table: String
        let role: String
        /// The number of users for whom they fail, and of all that were tried.
        let failed: Int
        let tried: Int
        /// The last error.
        let error: PolicyFailure

        var isOfAll: Bool { failed == tried }

        var sentence: String {
            let reason = error.reason.contains("SQLSTATE") ? error.reason : "\(error.reason), SQLSTATE \(error.state)"
            let remedy = "select from it as such a user to see why, and change the policies."
            return isOfAll
                ? "The policies of \(table) fail for every user that was tried as \(role) (\(reason)), so none of them is sent its "
                    + "changes; \(remedy)"
                : "The policies of \(table) fail for \(failed) of \(tried) users that were tried as \(role) (\(reason)), who are not "
                    + "sent what they fail on; \(remedy)"
        }
    }

    /// The limit for all statements of one table; then the trials so far decide.
    private static let patience = Duration.seconds(10)

    let table: NamedTable
    let connection: PostgresConnection

    /// The failures of the table's policies, at most one for each role.
    ///
    /// - Throws: `PostgresError`.
    func findFailures() throws -> [Failure] {
        let readers = try connection.query(
            WatchingSQL.policyReaders, [table.oid, ClientRoles.membershipPrivilege(connection)])
        guard readers.count > 0 else { return [] }
        let members = try DeclaredScope.readScopes(of: table.oid, on: connection).first?.members ?? []
        let known = try SampleUsers(table: table.oid, column: nil, members: members, connection: connection).drawUsers(
            from: [])
        let deadline = ContinuousClock.now + Self.patience
        try connection.runScript("begin read only; set local statement_timeout = '2s'; set local lock_timeout = '1s'")
        do {
            let found = try (0..<readers.count).compactMap { row -> Failure? in
                guard let role = readers.text(row, 0), let statement = readers.text(row, 1) else { return nil }
                return try findFailure(of: role, statement, users: known, until: deadline)
            }
            try connection.runScript("rollback")
            return found
        } catch {
            if !connection.isBroken { try connection.runScript("rollback") }
            throw error
        }
    }

    private func findFailure(
        of role: String, _ statement: String, users: [String], until deadline: ContinuousClock.Instant
    ) throws -> Failure? {
        // A visitor's token has no subject.
        let subjects: [String?] = role == "anon" ? [nil] : users + ["00000000-0000-4000-8000-000000000000"]
        var tried = 0
        var failures: [PolicyFailure] = []
        for subject in subjects where tried == 0 || ContinuousClock.now < deadline {
            tried += 1
            do { try trySelect(statement, as: role, subject) } catch let error as PostgresError
                where error.kind == .server
            {
                // A table that is in use or slow to read tells nothing about its policies.
                guard ![SQLState.lockNotAvailable, SQLState.queryCanceled].contains(error.sqlState) else {
                    tried -= 1
                    try connection.runScript("rollback to savepoint before")
                    break
                }
                failures.append(PolicyFailure(error))
                try connection.runScript("rollback to savepoint before")
            }
        }
        // Some of the drawn values are no user ids, and a policy may fail to cast them.
        if failures.count < tried { failures.removeAll(where: \.isOfData) }
        return failures.last.map {
            Failure(table: table.name, role: role, failed: failures.count, tried: tried, error: $0)
        }
    }

    private func trySelect(_ statement: String, as role: String, _ subject: String?) throws {
        try connection.runScript("savepoint before")
        _ = try connection.query(
            """
            select set_config('request.jwt.claims', json_strip_nulls(json_build_object('sub', $1::text, 'role', $2::text))::text, true),
                   set_config('request.jwt.claim.sub', coalesce($1, ''), true),
                   set_config('request.jwt.claim.role', $2, true), set_config('role', $2, true)
            """, [subject, role])
        _ = try connection.query(statement)
        try connection.runScript("rollback to savepoint before; release savepoint before")
    }
}
