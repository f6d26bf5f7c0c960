package import Postgres
package import Streams
package import Wire

extension CloseRule {
    /// Its first row as JSON, whatever its columns are. The first part is never run: it says of which types the parameters are, also of
    /// those that the statement does not use.
    var wrappedStatement: String {
        "with given as (select $1::text, $2::text, $3::text, $4::timestamptz, $5::timestamptz), closed as (\(statement)\n) "
            + "select to_jsonb(closed) from closed limit 1"
    }

    /// Whether the statement fits the database. It is planned and not run. The session must be in no transaction, and is used for one such
    /// check at a time.
    ///
    /// - Parameter role: with which rights it has to work, too; nil if whoever ends a stream has rights of their own.
    /// - Throws: `PostgresError` of kind `server` if it does not.
    package func check(as role: Name?, on connection: PostgresConnection) throws {
        // By `query`: a statement that is two is none.
        _ = try connection.query("prepare roost_close as \(wrappedStatement)")
        try connection.run("begin")
        do { try checkPrepared(as: role, on: connection) } catch let error as PostgresError where error.kind == .server
        {
            try connection.run("rollback; deallocate roost_close")
            throw error
        }
        try connection.run("rollback; deallocate roost_close")
    }

    private func checkPrepared(as role: Name?, on connection: PostgresConnection) throws {
        // It takes as many as the statement names.
        guard try connection.query(StreamSQL.preparedClose).flag(0, 0) else {
            throw PostgresError(.server, "it has parameters beyond $5")
        }
        guard let role else { return }
        _ = try connection.query(StreamSQL.becomeBearer, [role.text, "{}"])
        _ = try connection.query("explain execute roost_close('check', '', 'complete', now(), now())")
    }
}
