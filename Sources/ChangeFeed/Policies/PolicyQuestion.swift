package import Hub
package import Matching
package import Wire

/// A question to Postgres' row level security: which rows of one table may a role's users see or write?
package struct PolicyQuestion: Sendable {
    package enum Command: String, Sendable, Hashable {
        // The letters of pg_policy.polcmd.
        case select = "r"
        case insert = "a"
    }

    /// A user in question. Two subjects of one question never learn anything about each other.
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
    /// True if the answer should include `tablesRead`, which costs some microseconds per subject.
    package let wantsTablesRead: Bool
    /// SQL whose value for each subject the answer should include (`keys`).
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

/// The rows that each subject of a question may see or write. Rows that could not be decided are not visible.
package struct PolicyAnswer: Sendable {
    /// The rows that each subject may see, as ascending indices into the question's rows.
    package var visible: [[Int]]
    /// The value of the question's `userKey` for each subject; nil if not requested, or if it failed.
    package var keys: [String?]
    /// True if row level security does not apply to this role on this table: every requested row is visible.
    package var isUnrestricted = false
    /// True if the role may not do this for any row, regardless of policies: a privilege is missing; `problems` says which.
    package var isDenied = false
    /// The tables (a partition as its root) that the policies read in this evaluation, including through functions and
    /// views. Nil if not requested, or if an error left it unknown; reads for subjects in `failed` are not included.
    package var tablesRead: Set<UInt32>?
    /// The columns of the table that the policies may look at; nil for any.
    package var columnsRead: Set<Name>?
    /// The subjects, as indices, for whom there was an error: another time they may see more.
    package var failed: Set<Int> = []
    /// Those of `failed` for whom it may be worthwhile to ask again soon: not those whose policies took too long.
    package var undecided: Set<Int> = []
    /// The errors of the policies, for those of `failed` that Postgres answered with one.
    package var failures: [Int: PolicyFailure] = [:]
    /// Those of `undecided` who wait for a lock that another session holds.
    package var locked: Set<Int> = []
    /// Those of `locked` who waited for it when asked about alone.
    var lockedAlone: Set<Int> = []
    /// Those for whom the policies end the session: they are not asked about again for a while.
    package var ending: Set<Int> = []
    /// True if rows were not put back because another session holds a lock on their table.
    package var isRevivalLocked = false
    /// Sentences for the log, without anything of claims or rows. Each answer repeats those that are true of it.
    package var problems: [String] = []

    /// An answer in which nothing is visible.
    init(hiding question: PolicyQuestion) {
        visible = Array(repeating: [], count: question.subjects.count)
        keys = Array(repeating: nil, count: question.subjects.count)
    }

    /// Records an error from Postgres: another time the subject may see more.
    mutating func recordFailure(_ subject: Int, by failure: PolicyFailure) {
        undecided.insert(subject)
        failures[subject] = failure
    }

    /// Records a wait for a lock: what the policies read is unknown, and nothing is shown.
    mutating func waitsForLock(_ subjects: some Sequence<Int>) {
        for subject in subjects {
            locked.insert(subject)
            failed.insert(subject)
            undecided.insert(subject)
        }
        tablesRead = tablesRead ?? []
        columnsRead = columnsRead ?? []
    }

    /// Records that the policies ended the session: what they read is unknown, and nothing is shown.
    mutating func endsSession(_ subject: Int) {
        ending.insert(subject)
        failed.insert(subject)
        tablesRead = tablesRead ?? []
        columnsRead = columnsRead ?? []
    }
}

/// Time limits of policies. The feed waits for them, and every client's changes with it.
package struct PolicyLimits: Sendable {
    /// One question, with all its subjects.
    package var question = Duration.seconds(2)
    /// One subject, if its question took longer.
    package var subject = Duration.milliseconds(250)
    /// All the subjects of a question that took longer; those not reached see nothing.
    package var subjects = Duration.seconds(2)
    /// Questions asked together. Beyond this limit each is asked alone, on a connection of its own: a hanging session looks
    /// like a busy one.
    package var together = Duration.seconds(3)
    /// Additional time for connecting, the network and the catalog.
    package var network = Duration.seconds(5)

    package init() {}
}
