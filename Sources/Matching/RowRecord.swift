import Wire

/// A change's record for filters, parsed once: the row after an INSERT or UPDATE, or as much as the outbox has of a deleted
/// row, which may be only the columns of the replica identity if it came from the WAL.
package struct RowRecord: Sendable {
    package let table: Table
    private let bytes: [UInt8]
    private var columns: [Cell]

    private struct Cell {
        var range: Range<Int>?
        var isJSONNull = false
        /// The result of `value(at:)`, so that the value is parsed once for any number of filters.
        var value: RowValue?
    }

    package init(_ change: RowChange) {
        self.init(change, table: change.table)
    }

    /// `table` has the same columns as the change's own; the index shares one `Table` among all changes.
    init(_ change: RowChange, table: Table) {
        self.table = table
        bytes = (change.operation == .delete ? change.judgedOldRecord : change.judgedRecord) ?? []
        var columns = [Cell](repeating: Cell(), count: table.columns.count)
        let missing: RowValue = change.isReduced ? .omitted : .absent
        var fields = RowFields(table: table)
        fields.forEach(in: bytes[...]) { column, rawKey, value in
            guard let column else {
                if rawKey.isEmpty { Self.markNulls(JSON(trusted: value), of: table, in: &columns) }
                return
            }
            columns[column].range = value.startIndex..<value.endIndex
        }
        for i in columns.indices where columns[i].range == nil { columns[i].value = missing }
        self.columns = columns
    }

    /// Marks the columns that have a JSON null. Their list is the last member.
    private static func markNulls(_ nulls: JSON, of table: Table, in columns: inout [Cell]) {
        nulls.forEachMember { member in
            guard let column = table.columns.firstIndex(where: { member.isNamed($0.name.text) }) else { return }
            columns[column].isJSONNull = true
        }
    }

    /// True if a column has a JSON null, which JSON does not distinguish from SQL's.
    func isJSONNull(at column: Int) -> Bool { columns[column].isJSONNull }

    /// The JSON of a column's value.
    func cell(at column: Int) -> ArraySlice<UInt8>? {
        columns[column].range.map { bytes[$0] }
    }

    mutating func value(at column: Int) -> RowValue {
        if let value = columns[column].value { return value }
        let value = readValue(column)
        columns[column].value = value
        return value
    }

    private func readValue(_ column: Int) -> RowValue {
        guard let cell = cell(at: column) else { return .absent }
        if JudgedRecord.isNull(cell) { return columns[column].isJSONNull ? .opaque : .null }
        return CellReader.readCell(cell, of: table.columns[column]).map(RowValue.value) ?? .opaque
    }
}

extension RowChange {
    /// True if all columns of the row before the change are known.
    package var hasWholeOldRow: Bool {
        guard let oldRecord else { return false }
        var count = 0
        var fields = RowFields(table: table)
        fields.forEach(in: oldRecord[...]) { column, _, _ in if column != nil { count += 1 } }
        return count == table.columns.count
    }
}

/// A column's value according to a record.
enum RowValue: Sendable {
    /// The record has no such column: the table has been altered since, or the WAL has no more of a deleted row.
    case absent
    /// Left out because the row is over the limit: not NULL, but unknown.
    case omitted
    case null
    case value(ComparedValue)
    /// A value that only Postgres can compare.
    case opaque
}

/// Walks over the members of a record's JSON and finds the table's column for each.
struct RowFields {
    private let columns: [Column]
    private var expected = 0

    init(table: Table) {
        columns = table.columns
    }

    /// Visits the members in the order written: the column's index (nil if the table no longer has the column), the key
    /// between its quotes and the value, both as written.
    mutating func forEach(
        in record: ArraySlice<UInt8>, _ body: (Int?, _ rawKey: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> Void
    ) {
        JSON(trusted: record).forEachMember { member in
            body(column(of: member), member.rawKey, member.value.bytes)
        }
    }

    /// Records have their members in the order of the columns, so the expected column is almost always the right one.
    private mutating func column(of member: JSON.Member) -> Int? {
        if expected < columns.count, member.isNamed(columns[expected].name.text) {
            expected += 1
            return expected - 1
        }
        guard let found = columns.firstIndex(where: { member.isNamed($0.name.text) }) else { return nil }
        expected = found + 1
        return found
    }
}
