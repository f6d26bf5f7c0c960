/// What happened to the rows that a sequence follows.
public enum Change<Row: Sendable>: Sendable {
    case insert(Row, ChangeInfo)
    case update(Row, old: OldRow, ChangeInfo)
    case delete(OldRow, ChangeInfo)
    /// Something was missed that nobody can bring any more: load the rows again, and go on with the loop.
    case reload(ReloadReason)
    /// A row that is not as `Row` wants it, or that the hub could not send whole: read it from the database.
    case unreadable(UnreadableRow)
}
