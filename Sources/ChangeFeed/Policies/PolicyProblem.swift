import Hub
import Matching
import Postgres

/// Sentences for the log about policies that could not be asked. They say nothing of claims and rows, which Postgres'
/// messages quote.
struct PolicyProblem {
    let question: PolicyQuestion

    private var table: String { SQLText.qualified(question.table.schema, question.table.name) }
    private var role: String { SQLText.identifier(question.role) }
    private var act: String {
        question.command == .select ? "Select from it as such a user to see why." : "Insert as such a user to see why."
    }

    func failed(_ problem: PolicyReply.Problem, subjects: Int) -> String {
        "A policy of \(table) failed for \(subjects) user(s) of the role \(role), who do not see the rows it failed on "
            + "(\(Self.reason(problem.state, problem.message))). \(act)"
    }

    func failedAsAWhole(_ error: PostgresError) -> String {
        "The policies of \(table) cannot be asked for the role \(role), whose users do not see its rows "
            + "(\(Self.reason(error.sqlState ?? "no state", error.message))). \(act)"
    }

    func hung(subjects: Int) -> String {
        "The policies of \(table) took too long for \(subjects) user(s) of the role \(role), who do not see the rows; "
            + "an index for what the policies read may help."
    }

    func unsendable(subjects: Int) -> String {
        "The tokens of \(subjects) user(s) of the role \(role) contain a NUL, for which Postgres has no text, "
            + "so they see no rows of \(table)."
    }

    func lacks(column: String) -> String {
        "Rows of \(table) were written without the column \(SQLText.identifier(column)), which its policies read, "
            + "so they are shown to no one of the role \(role): they are too large, or the table was altered since."
    }

    var isBroken: String {
        "Some rows of \(table) do not fit its columns any more, so they are shown to no one of the role \(role)."
    }

    /// Only messages that name tables, columns, functions and types are quoted.
    private static func reason(_ state: String, _ message: String) -> String {
        let naming = ["42501", "42P01", "42P17", "42703", "42704", "42725", "42883", "3F000"]
        return naming.contains(state) ? message : "SQLSTATE \(state)"
    }
}
