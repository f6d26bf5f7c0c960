import Wire

/// Walks over the members of a record and tells which column each is.
struct RowFields {
    private let columns: [Column]
    private var expected = 0

    init(table: Table) {
        columns = table.columns
    }

    /// Visits the members in the order written: the column's index (nil if the table has no such column any more), the
    /// key between its quotes and the value, both as written.
    mutating func forEach(
        in record: ArraySlice<UInt8>, _ body: (Int?, _ rawKey: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void
    ) {
        JSON(trusted: record).forEachMember { member in
            body(column(of: member), member.rawKey, member.value.bytes)
        }
    }

    /// Records have their members in the order of the columns, so the next one is almost always the right one.
    private mutating func column(of member: JSON.Member) -> Int? {
        if expected < columns.count, member.isNamed(columns[expected].name) {
            expected += 1
            return expected - 1
        }
        guard let found = columns.firstIndex(where: { member.isNamed($0.name) }) else { return nil }
        expected = found + 1
        return found
    }
}
