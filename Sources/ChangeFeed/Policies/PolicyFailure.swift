package import Postgres

/// An error that policies met for a user.
package struct PolicyFailure: Hashable, Sendable {
    /// The code of Postgres' appendix A; empty if the error is not the server's.
    package let state: String
    private let message: String

    package init(state: String, message: String) {
        self.state = state
        self.message = message
    }

    package init(_ error: PostgresError) { self.init(state: error.sqlState ?? "", message: error.message) }

    /// The reason in words for anyone: messages may quote values of rows and claims, so only those are repeated that name
    /// tables, columns, functions and types.
    package var reason: String {
        let naming = ["42501", "42P01", "42P17", "42703", "42704", "42725", "42883", "3F000"]
        return naming.contains(state) ? message : "SQLSTATE \(state.isEmpty ? "unknown" : state)"
    }

    /// True if it fails for every row: class 42 is about the names and types of a statement, 0A about what Postgres does
    /// not support (a plan whose types have changed), XX about its internals.
    var isOfPolicy: Bool { isOf("42", "0A", "XX") }

    /// True for errors about values (class 22, data exception): they may be due to a row or to the claims (a `sub` that is
    /// not a uuid) and then never pass, or to what the policy reads, and then they may.
    package var isOfData: Bool { isOf("22") }

    /// True if it will not pass by itself soon. Functions raise P0.
    var isLasting: Bool { isOfPolicy || isOfData || isOf("P0") }

    private func isOf(_ classes: String...) -> Bool { classes.contains { state.hasPrefix($0) } }
}
