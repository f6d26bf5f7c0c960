extension Column {
    /// The hub has the column's values as text in bytes.
    var isComparedAsText: Bool { comparison == .text || comparison == .textByBytes }

    /// like, match and their kin exist for the type.
    var isTextLike: Bool {
        isComparedAsText || ["text", "varchar", "bpchar", "name", "citext"].contains(type)
    }

    /// The hub orders the column's values as Postgres does.
    var isOrderedInProcess: Bool {
        switch comparison {
        case .text, .canonical, .postgres: false
        default: true
        }
    }
}
