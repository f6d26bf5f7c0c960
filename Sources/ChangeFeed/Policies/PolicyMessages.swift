import Hub
import Matching
import Postgres
import Wire

/// Sentences for the log about policies that could not be evaluated. They repeat nothing of claims and rows, which
/// Postgres' messages quote.
struct PolicyProblem {
    let question: PolicyQuestion

    private var table: String { SQLText.qualifiedName(question.table.schema, question.table.name) }
    private var role: String { SQLText.identifier(question.role) }
    private var act: String {
        question.command == .select ? "Select from it as such a user to see why." : "Insert as such a user to see why."
    }

    func failed(_ failure: PolicyFailure, subjects: Int) -> String {
        "A policy of \(table) failed for \(subjects) user(s) of the role \(role), who do not see the rows it failed on "
            + "(\(failure.reason)). \(act)"
    }

    func failedAsAWhole(_ error: PostgresError) -> String {
        "The policies of \(table) cannot be asked for the role \(role), whose users do not see its rows "
            + "(\(PolicyFailure(error).reason)). \(act)"
    }

    func hung(subjects: Int) -> String {
        "The policies of \(table) took too long for \(subjects) user(s) of the role \(role), who do not see the rows; "
            + "an index for what the policies read may help."
    }

    func locked(subjects: Int) -> String {
        "The policies of \(table) wait for a lock for \(subjects) user(s) of the role \(role), who do not see its rows for now; "
            + "end the transaction that locks what they read."
    }

    func endedSession(subjects: Int) -> String {
        "The policies of \(table) end the session of Postgres that asks them for \(subjects) user(s) of the role \(role), who "
            + "see none of its rows for \(PolicyTrials.bar.components.seconds / 60) minutes. \(act)"
    }

    func unsendable(subjects: Int) -> String {
        "The tokens of \(subjects) user(s) of the role \(role) contain a NUL, which no text in Postgres can hold, so "
            + "they see no rows of \(table)."
    }

    func lacks(column: Name) -> String {
        "Rows of \(table) were written without the column \(SQLText.identifier(column)), which its policies read, so "
            + "no user of the role \(role) sees them: they are too large, or the table was altered since, or they are deleted rows "
            + "of which the WAL has the replica identity alone."
    }

    func isAmbiguous(column: Name) -> String {
        "Rows of \(table) do not say whether a null of the column \(SQLText.identifier(column)) is JSON's or SQL's, so no user of "
            + "the role \(role) sees them: they were written before `roost migrate`, or before the column was noticed."
    }

    func leavesOut(_ omission: String) -> String {
        "Deleted rows of \(table) are not told to those who could see them by rows that were deleted with them, as these could "
            + "not be put back to ask the policies: \(omission)."
    }

    var isBroken: String {
        "Some rows of \(table) do not fit its columns any more, so no user of the role \(role) sees them."
    }
}

/// The reason why a role's rows of a table cannot be judged, or are withheld from it, and the remedy.
struct PolicyDenial {
    let sentence: String
    static let noSuchRole = "A token names a role that has a NUL in its name, which no role of a database has."

    /// - Returns: nil if there is no obstacle.
    init?(_ question: PolicyQuestion, _ facts: PolicyDescription, serverVersion: Int) {
        let table = SQLText.qualifiedName(question.table.schema, question.table.name)
        let role = SQLText.identifier(question.role)
        let hub = SQLText.identifier(facts.hub)
        func grant(_ sql: String) -> String { "run: grant \(sql)" }
        if facts.schema == nil {
            sentence = "The table \(table) is gone, so nobody sees its rows."
        } else if !facts.roleExists {
            sentence =
                "A token names the role \(role), which the database does not have; create it or correct the token."
        } else if !facts.isAssumable {
            sentence =
                "The hub may not act as \(role), so its users see no rows of \(table); "
                + grant("\(role) to \(hub)")
        } else if !facts.mayUseSchema {
            let schema = SQLText.identifier(question.table.schema)
            sentence =
                "The role \(role) may not use the schema of \(table); if it should, "
                + grant("usage on schema \(schema) to \(role)")
        } else if !facts.mayWrite {
            sentence =
                "The role \(role) may not insert into \(table); if it should, "
                + grant("insert on \(SQLText.name(of: question.table)) to \(role)")
        } else if !facts.isRestricted || facts.permissive == nil {
            return nil
        } else if !facts.mayCreateFunctions {
            sentence =
                "The hub may not create temporary functions, with which it asks the policies of \(table); "
                + "as the owner of the database " + grant("temporary on its database to \(hub)")
        } else if let schemas = facts.unusableSchemas, serverVersion < 140_000 {
            sentence =
                "Before Postgres 14 the policies of \(table) can be asked only by a role that may use the schemas "
                + "they name; " + grant("usage on schema \(schemas) to \(role)")
        } else {
            return nil
        }
    }
}
