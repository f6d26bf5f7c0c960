import CPostgres

/// Detects a pooler between the hub and Postgres, and whether it leaves the hub its sessions.
///
/// A pooler answers a connection before it has a session to lend, so the process ID in its BackendKeyData is its own
/// invention and differs from pg_backend_pid(): PgBouncer, Odyssey, Supavisor and PgCat do so. In session mode the client
/// then keeps one session, which serves a hub. In transaction mode the session goes to the next client that asks: LISTEN
/// and advisory locks are lost, and the hub's session settings affect other clients' statements. So the check runs before
/// anything is set.
package enum Pooler {
    /// The hub's message when it cannot work; no other message begins this way.
    package static let refusal =
        "A pooler between the hub and Postgres lends a session for one transaction at a time (PgBouncer with pool_mode "
        + "= transaction, Supabase's port 6543), but a hub needs sessions of its own; name Postgres itself, or a pool "
        + "in session mode, in database.url (ROOST_DATABASE_URL)"

    /// Connects once, only to find out.
    ///
    /// - Returns: `refusal` if no hub can work there; nil if one can, or without an answer within `limit`.
    package static func problem(of conninfo: String, within limit: Duration) -> String? {
        do {
            _ = try PostgresConnection(conninfo, within: limit)
            return nil
        } catch {
            return (error as? PostgresError)?.isOfPooler == true ? refusal : nil
        }
    }

    /// - Parameters:
    ///   - connection: to a pooler, with nothing set on it.
    ///   - connect: opens another connection of the same kind.
    /// - Throws: `PostgresError` if sessions are lent by the transaction or by the statement.
    static func demandSession(
        of connection: PostgresConnection, within limit: Duration, connect: () throws -> PostgresConnection
    ) throws {
        let other = try connect()
        // When both are used in turn, each gets the session that the other has just given back. Most poolers lend the
        // session that was returned last; for those that lend the longest idle one, each round shifts the turns.
        for round in 0..<4 {
            let own = try backendID(of: connection, limit)
            for _ in 0..<round { _ = try backendID(of: other, limit) }
            do {
                try other.runScript("begin", within: limit)
            } catch let error as PostgresError where error.kind == .server || error.message.contains("pooling mode") {
                // Statement mode: no transactions at all. PgBouncer closes the connection on `begin`.
                throw PostgresError(.connection, refusal)
            }
            guard try backendID(of: other, limit) != own, try backendID(of: connection, limit) == own else {
                throw PostgresError(.connection, refusal)
            }
            try other.runScript("rollback", within: limit)
        }
    }

    static func backendID(of connection: PostgresConnection, _ limit: Duration) throws -> Int32? {
        try connection.query("select pg_catalog.pg_backend_pid()", within: limit).integer(0, 0).flatMap {
            Int32(exactly: $0)
        }
    }
}

extension PostgresError {
    /// True when only the route to the database is wrong.
    package var isOfPooler: Bool { message == Pooler.refusal }
}

/// Tells a server that accepts writes from a standby.
package enum Primary {
    /// - Throws: `PostgresError` if the server is in recovery: a hub there can neither listen nor store its cursor.
    package static func demandPrimary(on connection: PostgresConnection) throws {
        guard try connection.query("select pg_is_in_recovery()").flag(0, 0) else { return }
        throw PostgresError(
            .connection,
            "This server is a standby (in recovery), and a hub needs the primary; name the primary in "
                + "ROOST_DATABASE_URL, or all of them (host=a,b): the hub then takes the one that is the primary.")
    }
}
