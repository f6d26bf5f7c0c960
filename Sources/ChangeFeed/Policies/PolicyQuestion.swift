package import Hub
package import Matching
package import Wire

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
    package let role: Name
    /// JSON objects as `JudgedRecord` makes them.
    package let rows: [[UInt8]]
    package let subjects: [Subject]
    /// Whether the answer should tell `tablesRead`: it costs some microseconds for each subject.
    package let wantsTablesRead: Bool
    /// SQL whose value for each subject the answer should tell (`keys`).
    package let userKey: Name?
    /// Deleted rows that are put back for the question.
    package let revival: Revival?

    package init(
        table: Table, command: Command, role: Name, rows: [[UInt8]], subjects: [Subject],
        wantsTablesRead: Bool = false, userKey: Name? = nil, revival: Revival? = nil
    ) {
        self.table = table
        self.command = command
        self.role = role
        self.rows = rows
        self.subjects = subjects
        self.wantsTablesRead = wantsTablesRead
        self.userKey = userKey
        self.revival = revival
    }
}

/// Which rows each subject of a question may see or write. What could not be decided is not visible.
package struct PolicyAnswer: Sendable {
    /// For each subject the rows it may see, ascending indices into the question's rows.
    package var visible: [[Int]]
    /// For each subject the value of the question's `userKey`; nil where nobody asked, or where it failed.
    package var keys: [String?]
    /// Row level security does not apply to this role on this table: every row that was asked for is visible.
    package var isUnrestricted = false
    /// The role may not do this whatever the row, its policies aside: a privilege is missing; `problems` says which.
    package var isDenied = false
    /// The tables (a partition as its root) that the policies read in this evaluation, through functions and views too.
    /// Nil where nobody asked, and where an error left it unknown; what it was for those in `failed` is not in it.
    package var tablesRead: Set<UInt32>?
    /// The columns of the table that the policies may look at; nil where it may be any.
    package var columnsRead: Set<Name>?
    /// The subjects, as indices, for whom an error stood in the way: another time they may see more.
    package var failed: Set<Int> = []
    /// Those of them for whom it may be worth while to ask again soon: not those whose policies took too long.
    package var undecided: Set<Int> = []
    /// How the policies failed for those of these whom Postgres answered with an error.
    package var failures: [Int: PolicyFailure] = [:]
    /// Those of `undecided` who wait for a lock that somebody else holds.
    package var locked: Set<Int> = []
    /// Those of these who waited for it when they were asked for alone.
    var lockedAlone: Set<Int> = []
    /// Those for whom the policies end the session that asks them: they are not asked for again for a while.
    package var ending: Set<Int> = []
    /// Whether rows were not put back because somebody holds a lock on their table.
    package var isRevivalLocked = false
    /// Sentences for the log, without anything of claims or rows. They come again with each answer they are true of.
    package var problems: [String] = []

    /// Nothing is visible.
    init(hiding question: PolicyQuestion) {
        visible = Array(repeating: [], count: question.subjects.count)
        keys = Array(repeating: nil, count: question.subjects.count)
    }

    /// Postgres answered with an error: another time they may see more.
    mutating func fails(_ subject: Int, by failure: PolicyFailure) {
        undecided.insert(subject)
        failures[subject] = failure
    }

    /// A lock is in the way: what the policies read is not known, and nothing of it is shown.
    mutating func waitsForLock(_ subjects: some Sequence<Int>) {
        for subject in subjects {
            locked.insert(subject)
            failed.insert(subject)
            undecided.insert(subject)
        }
        tablesRead = tablesRead ?? []
        columnsRead = columnsRead ?? []
    }

    /// Nothing is known of what policies read that nobody asks; nothing of it is shown either.
    mutating func endsSession(_ subject: Int) {
        ending.insert(subject)
        failed.insert(subject)
        tablesRead = tablesRead ?? []
        columnsRead = columnsRead ?? []
    }
}

/// How long policies may think. A feed waits for them, and everybody's changes with it.
package struct PolicyLimits: Sendable {
    /// One question, all its subjects.
    package var question = Duration.seconds(2)
    /// One subject, where its question took longer.
    package var subject = Duration.milliseconds(250)
    /// All the subjects of a question that took longer; who is not reached sees nothing.
    package var subjects = Duration.seconds(2)
    /// Questions that are asked together, beyond which each is asked alone, on a connection of its own: a session that
    /// hangs looks like one that has much to think about.
    package var together = Duration.seconds(3)
    /// What connecting, the network and the catalog may take on top.
    package var network = Duration.seconds(5)

    package init() {}
}
