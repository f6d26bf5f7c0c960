package import Wire

/// A row change as it arrived, not decoded yet (wire-protocol A5).
package struct RowChange: Sendable {
    package let kind: ChangeKind
    package let schema: String
    package let table: String
    package let record: JSON?
    package let old: JSON?
    /// Where to resume behind this change.
    package let cursor: String?
    /// UTC, `YYYY-MM-DDTHH:MM:SS.mmmZ`: of one length, so the later text is the later time.
    package let commitTime: String?
    /// What the hub could not send of the row.
    package let errors: [String]
    package let data: JSON

    package init(
        kind: ChangeKind, schema: String, table: String, record: JSON?, old: JSON?, cursor: String?,
        commitTime: String?, errors: [String], data: JSON
    ) {
        self.kind = kind
        self.schema = schema
        self.table = table
        self.record = record
        self.old = old
        self.cursor = cursor
        self.commitTime = commitTime
        self.errors = errors
        self.data = data
    }

    /// The ids of the subscriptions that it is for, and the change.
    package static func parse(_ payload: JSON) -> (ids: [Int], RowChange)? {
        guard let data = payload["data"], let kind = data["type"]?.string.flatMap(ChangeKind.init) else { return nil }
        let change = RowChange(
            kind: kind, schema: data["schema"]?.string ?? "", table: data["table"]?.string ?? "",
            record: data["record"], old: data["old_record"], cursor: payload["cursor"]?.string,
            commitTime: data["commit_timestamp"]?.string,
            errors: data["errors"]?.elements.compactMap(\.string) ?? [], data: data)
        return (payload["ids"]?.elements.compactMap(\.int) ?? [], change)
    }
}
