import Postgres

enum AdminSession {
    /// A connection for the command line.
    ///
    /// - Parameters:
    ///   - teller: waits for its answers.
    ///   - limit: for each host to connect.
    static func open(
        _ conninfo: String, teller: AdminTeller? = nil, within limit: Duration = .seconds(10)
    ) throws -> PostgresConnection {
        let connection = try PostgresConnection(conninfo, waiter: teller ?? PlainWaiter(), within: limit)
        teller?.backendID = connection.backendID
        return connection
    }
}

/// A command that could not do its work; the description is the sentence to print.
package struct AdminError: Error, Sendable, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

/// Runs a command's body and puts what libpq or Postgres said into a sentence that names the task.
func administer<Outcome>(_ task: String, _ body: () throws -> Outcome) throws -> Outcome {
    do {
        return try body()
    } catch let error as PostgresError {
        if error.isOfPooler { throw AdminError("Cannot \(task): \(error.message).") }
        switch error.sqlState {
        case SQLState.insufficientPrivilege:
            throw AdminError("Cannot \(task): \(error.message); run it as the owner, or have the right granted.")
        case nil:
            throw AdminError("Cannot \(task): Postgres cannot be reached (\(error.message)); check ROOST_DATABASE_URL.")
        default:
            throw AdminError("Cannot \(task): \(error.message).")
        }
    }
}
