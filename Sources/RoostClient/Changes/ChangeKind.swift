/// What happened to a row.
public enum ChangeKind: String, Sendable, CaseIterable {
    case insert = "INSERT"
    case update = "UPDATE"
    case delete = "DELETE"
}
