package import Hub
package import Matching

/// Which rows of one table a role's users may see or write, as Postgres' row level security decides.
package struct PolicyQuestion: Sendable {
    package enum Command: String, Sendable, Hashable {
        // The letters of pg_policy.polcmd.
        case select = "r"
        case insert = "a"
    }

    /// Who asks. Two subjects of one question never learn anything of each other.
    package struct Subject: Sendable {
        package let claims: Claims
        /// `realtime.topic`, for policies on channels; nil leaves it empty.
        package let topic: String?
        /// Indices into the question's rows, ascending; may be empty.
        package let rows: [Int]

        package init(claims: Claims, topic: String? = nil, rows: [Int]) {
            self.claims = claims
            self.topic = topic
            self.rows = rows
        }
    }

    package let table: Table
    package let command: Command
    /// Subjects act as this role, whatever role their claims name.
    package let role: String
    /// JSON objects as the outbox has them (`row_to_json`).
    package let rows: [[UInt8]]
    package let subjects: [Subject]
    /// Whether the answer should tell `tablesRead`: it costs some microseconds for each subject.
    package let wantsTablesRead: Bool

    package init(
        table: Table, command: Command, role: String, rows: [[UInt8]], subjects: [Subject],
        wantsTablesRead: Bool = false
    ) {
        self.table = table
        self.command = command
        self.role = role
        self.rows = rows
        self.subjects = subjects
        self.wantsTablesRead = wantsTablesRead
    }
}
