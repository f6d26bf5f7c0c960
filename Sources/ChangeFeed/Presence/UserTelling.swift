import Hub
import Postgres

/// Tells the application of a batch of users, in one transaction: roost's note of who is online and the application's own
/// tables never say different things.
struct UserTelling {
    let node: String
    let statement: String
    let connection: PostgresConnection

    /// - Throws: `UserFault`, and nothing has happened; `PostgresError` where the connection is to be given up.
    func tell(_ transitions: ArraySlice<UserTransition>) throws {
        var users = TextArray()
        var online = TextArray()
        var times = TextArray()
        for transition in transitions {
            users.append(transition.user.utf8)
            online.append(transition.isOnline)
            times.append(transition.at)
        }
        try transaction { place in
            let told = try connection.query(
                SQL.tellUsers, [node, users.literal, online.literal, times.literal])
            place = .statement
            guard told.integer(0, 0) ?? 0 > 0 else { return true }
            _ = try connection.query(statement, (1...3).map { told.text(0, $0) })
            return true
        }
    }

    /// Whether all of it works where there is nobody to be told of: if not, it is not any user's fault.
    ///
    /// - Throws: as `tell`.
    func rehearse() throws {
        try transaction { place in
            _ = try connection.query(SQL.tellUsers, [node, "{}", "{}", "{}"])
            place = .statement
            _ = try connection.query(statement, ["{}", "{}", "{}"])
            return false
        }
    }

    /// - Parameter body: returns whether to commit; says whose SQL runs.
    private func transaction(_ body: (inout UserFault.Place) throws -> Bool) throws {
        var place = UserFault.Place.own
        do {
            try connection.run(SQL.usersTurn)
            let commits = try body(&place)
            try connection.run(commits ? "commit" : "rollback")
        } catch let error as PostgresError where !connection.isBroken {
            try connection.run("rollback")
            throw UserFault(place: place, error: error)
        }
    }
}
