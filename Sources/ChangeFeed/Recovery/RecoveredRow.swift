import Hub
import Matching
import Postgres

/// One change that a recovery read.
struct RecoveredRow {
    let id: Int64
    let transaction: UInt64
    /// Nil where nobody can be shown it: it is a message, or its table is gone, or is not watched any more.
    let change: RowChange?
    let bytes: Int
}

/// Reads rows of RecoveryWindow.sql by the tables as they are today.
struct RecoveredRowReader {
    private let catalog: Catalog
    /// Tables as some rows were written, for rows in the same shape: each new object would be judged by itself.
    private var shapes: [UInt32: (keys: Set<[UInt8]>, table: Table)] = [:]

    init(catalog: Catalog) { self.catalog = catalog }

    mutating func row(_ result: QueryResult) throws -> RecoveredRow {
        guard let id = result.integer(0, 0), let at = result.bytes(0, 5) ?? result.bytes(0, 4),
            let transaction = result.text(0, 8).flatMap({ UInt64($0) })
        else { throw PostgresError(.server, "A change has no id, time or transaction.") }
        let record = result.bytes(0, 6)
        let old = result.bytes(0, 7)
        let operation: RowChange.Operation? =
            switch result.bytes(0, 2)?.first {
            case UInt8(ascii: "I"): .insert
            case UInt8(ascii: "U"): .update
            case UInt8(ascii: "D"): .delete
            default: nil
            }
        let isReduced = result.flag(0, 3)
        let oid = UInt32(truncatingIfNeeded: result.integer(0, 1) ?? 0)
        var change: RowChange?
        if let operation, let table = self.table(oid, of: isReduced ? nil : record ?? old) {
            change = RowChange(
                id: id, table: table, operation: operation, commitTimestamp: Timestamps.forClients(at),
                record: record.map { Array($0) }, oldRecord: old.map { Array($0) }, isReduced: isReduced)
        }
        return RecoveredRow(
            id: id, transaction: transaction, change: change, bytes: (record?.count ?? 0) + (old?.count ?? 0))
    }

    /// The table as it is today, without the columns that a record from before it was altered does not have.
    private mutating func table(_ oid: UInt32, of record: UnsafeBufferPointer<UInt8>?) -> Table? {
        guard let table = catalog.table(oid) else { return nil }
        guard let record, !catalog.describes(record, of: oid) else { return table }
        let keys = RecordKeys.all(of: record)
        if let known = shapes[oid], known.keys == keys { return known.table }
        let shape = table.restricted(to: record, older: nil)
        shapes[oid] = (keys, shape)
        return shape
    }
}
