/// Which rows each subject of a question may see or write. What could not be decided is not visible.
package struct PolicyAnswer: Sendable {
    /// For each subject the rows it may see, ascending indices into the question's rows.
    package var visible: [[Int]]
    /// Row level security does not apply to this role on this table: every row that was asked for is visible.
    package var isUnrestricted = false
    /// The role may not do this whatever the row, its policies aside: a privilege is missing; `problems` says which.
    package var isDenied = false
    /// The tables (a partition as its root) that the policies read in this evaluation, through functions and views too.
    /// Nil where nobody asked, and where an error left it unknown; what it was for those in `failed` is not in it.
    package var tablesRead: Set<UInt32>?
    /// The columns of the table that the policies may look at; nil where it may be any.
    package var columnsRead: Set<String>?
    /// The subjects, as indices, for whom an error stood in the way: another time they may see more.
    package var failed: Set<Int> = []
    /// Those of them for whom it may be worth while to ask again soon: not those whose policies took too long.
    package var undecided: Set<Int> = []
    /// Sentences for the log, without anything of claims or rows. They come again with each answer they are true of.
    package var problems: [String] = []

    /// Nothing is visible.
    init(hiding question: PolicyQuestion) {
        visible = Array(repeating: [], count: question.subjects.count)
    }
}
