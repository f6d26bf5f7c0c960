package import Postgres

/// An error that policies met for somebody.
package struct PolicyFailure: Hashable, Sendable {
    /// As Postgres' appendix A has it; empty where the server did not speak.
    package let state: String
    private let message: String

    package init(state: String, message: String) {
        self.state = state
        self.message = message
    }

    package init(_ error: PostgresError) { self.init(state: error.sqlState ?? "", message: error.message) }

    /// Why, in words for anybody: messages may quote values of rows and claims, so only those are repeated that name tables, columns,
    /// functions and types.
    package var reason: String {
        let naming = ["42501", "42P01", "42P17", "42703", "42704", "42725", "42883", "3F000"]
        return naming.contains(state) ? message : "SQLSTATE \(state.isEmpty ? "unknown" : state)"
    }

    /// Class 42 is about the names and types of a statement, 0A about what Postgres does not support (a plan whose types have
    /// changed), XX about its inside: whatever the row, it fails.
    var isOfPolicy: Bool { isOf("42", "0A", "XX") }

    /// The error is about values (class 22, data exception): it may lie in a row or in the claims (a `sub` that is no uuid) and then
    /// never passes, or in what the policy reads, and then it may.
    package var isOfData: Bool { isOf("22") }

    /// It does not pass by itself soon. P0 is what functions raise.
    var isLasting: Bool { isOfPolicy || isOfData || isOf("P0") }

    private func isOf(_ classes: String...) -> Bool { classes.contains { state.hasPrefix($0) } }
}
