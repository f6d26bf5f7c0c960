package import Postgres
package import Streams
package import Wire

extension CloseRule {
    /// Returns the statement's first row as JSON, whatever its columns are. The first part never runs: it declares the
    /// types of all parameters, including those that the statement does not use.
    var wrappedStatement: String {
        "with given as (select $1::text, $2::text, $3::text, $4::timestamptz, $5::timestamptz), closed as (\(statement)\n) "
            + "select to_jsonb(closed) from closed limit 1"
    }

    /// Checks whether the statement fits the database, by planning it without running it. The session must not be in a
    /// transaction, and can run one such check at a time.
    ///
    /// - Parameter role: a role whose rights have to suffice as well; nil if the caller that ends a stream has rights
    ///   of its own.
    /// - Throws: `PostgresError` of kind `server` if it does not fit.
    package func checkStatement(as role: Name?, on connection: PostgresConnection) throws {
        // By `query`: two statements in one text are an error.
        _ = try connection.query("prepare roost_close as \(wrappedStatement)")
        try connection.runScript("begin")
        do { try checkPrepared(as: role, on: connection) } catch let error as PostgresError where error.kind == .server
        {
            try connection.runScript("rollback; deallocate roost_close")
            throw error
        }
        try connection.runScript("rollback; deallocate roost_close")
    }

    private func checkPrepared(as role: Name?, on connection: PostgresConnection) throws {
        // PREPARE accepts any number of parameters.
        guard try connection.query(StreamSQL.preparedClose).flag(0, 0) else {
            throw PostgresError(.server, "it has parameters beyond $5")
        }
        guard let role else { return }
        _ = try connection.query(StreamSQL.becomeBearer, [role.text, "{}"])
        _ = try connection.query("explain execute roost_close('check', '', 'complete', now(), now())")
    }
}
