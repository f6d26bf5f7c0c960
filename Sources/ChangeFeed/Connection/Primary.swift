/// Tells a server that takes writes from a standby.
enum Primary {
    /// - Throws: `PostgresError` where the server is in recovery: a hub there can neither listen nor store its cursor.
    static func demand(on connection: PostgresConnection) throws {
        guard try connection.query("select pg_is_in_recovery()").flag(0, 0) else { return }
        throw PostgresError(
            .connection,
            "This server is a standby (in recovery), and a hub needs the primary; name the primary in "
                + "ROOST_DATABASE_URL, or all of them (host=a,b): the hub then takes the one that is the primary.")
    }
}
