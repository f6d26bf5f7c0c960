import Hub
import Matching
import Postgres

/// RecoveryWindow in Recovery.sql, for several starts at once.
enum RecoveryStatement {
    private static let window = SQLTemplate(withoutComments: RecoverySQL.recoveryWindow.text)
    private static let slice = SQLTemplate(withoutComments: RecoverySQL.recoverySlice.text)

    enum Reading {
        /// Examines at most this many rows, and returns about this many bytes of them, in no particular order.
        case limit(Int, bytes: Int)
        /// Everything that is wanted, by id.
        case ordered
    }

    /// - Parameters:
    ///   - upper: the end of the recovery; every start precedes it.
    ///   - prefilter: the rows that can concern the members; nil if all can.
    static func text(
        starts: [FeedCursor], upTo upper: Snapshot, of prefilter: RowPrefilter?, _ form: OutboxForm,
        _ reading: Reading
    ) -> String {
        let lowest = starts.map(\.seen.xmax).min() ?? upper.xmax
        var running: Set<UInt64> = []
        // Many members share one start, for which this is done only once.
        var before: Snapshot?
        for start in starts where start.seen != before {
            running.formUnion(start.seen.running.lazy.filter { $0 < lowest })
            before = start.seen
        }
        var parts = [
            "xmax": String(lowest), "bound": String(upper.xmax), "upper": upper.text,
            "xip": "{" + running.sorted().map(String.init).joined(separator: ",") + "}",
            "committed": form.committed, "record": form.record, "old": form.oldRecord,
            "text": form.text, "oldtext": form.oldText, "deletion": OutboxForm.deletion,
            // An unrecorded change has no values to test.
            "wanted": "op <> 'M'" + (prefilter.map { " and (op = 'L' or \($0.sql(isUTF8: form.isUTF8)))" } ?? ""),
        ]
        switch reading {
        case .ordered:
            parts["only"] = "where wanted"
            parts["rest"] = "order by id"
            return window.filled(parts)
        case .limit(let rows, let bytes):
            parts["only"] = ""
            parts["rest"] = "limit \(rows)"
            return slice.filled(["missed": window.filled(parts), "most": String(bytes)])
        }
    }
}

extension RowPrefilter {
    /// Rows stored with more bytes than this are not searched: they may be compressed or stored out of line, and unpacking
    /// a thousand of them would take too long.
    private static let largestRow = 2000

    /// The condition on a row of roost.change.
    ///
    /// A deleted row is judged by its old values, any other by its new ones. A reduced row lacks values, so it always
    /// counts. A database in another encoding may lack a text's characters, and would refuse the whole statement.
    func sql(isUTF8: Bool) -> String {
        var conditions: [String] = []
        for (oid, rows) in tables.sorted(by: { $0.key < $1.key }) {
            switch rows {
            case .all: conditions.append("relid = \(oid)")
            case .holding(let texts) where !isUTF8 && !texts.allSatisfy({ $0.utf8.allSatisfy { $0 < 0x80 } }):
                conditions.append("relid = \(oid)")
            case .holding(let texts):
                let found = texts.sorted().map {
                    "strpos(coalesce(record, old_record)::text, \(SQLText.literal($0.text))) > 0"
                }
                let size = "pg_column_size(coalesce(record, old_record)) > \(Self.largestRow)"
                conditions.append(
                    "relid = \(oid) and (reduced or " + ([size] + found).joined(separator: " or ") + ")")
            }
        }
        return conditions.isEmpty ? "false" : conditions.map { "(\($0))" }.joined(separator: " or ")
    }
}

/// One change that a recovery read.
struct RecoveredRow {
    let id: Int64
    let transaction: UInt64
    /// Nil if it cannot be shown to any member: it is a message, or its table is gone or no longer watched.
    let change: RowChange?
    /// The table of an unrecorded change, which is all that is known about the change.
    var lossOf: UInt32?
    let bytes: Int
}

/// Reads the rows of RecoveryWindow in Recovery.sql according to today's tables.
struct RecoveredRowReader {
    private let catalog: Catalog
    /// Tables as some rows were written, shared by rows of the same shape: each new object would be judged separately.
    private var shapes: [UInt32: (keys: Set<[UInt8]>, table: Table)] = [:]

    init(catalog: Catalog) { self.catalog = catalog }

    mutating func readRow(_ result: QueryResult) throws -> RecoveredRow {
        let row = OutboxRow(result)
        guard let id = row.id, let at = row.committedAt ?? row.writtenAt,
            let transaction = result.text(0, 11).flatMap({ UInt64($0) })
        else { throw PostgresError(.server, "A change has no id, time or transaction.") }
        let (record, old) = (row.record, row.oldRecord)
        var change: RowChange?
        if let operation = row.operation,
            let table = fittingTable(row.table, of: row.isReduced ? nil : record ?? old, operation)
        {
            change = RowChange(
                id: id, table: table, operation: operation, commitTimestamp: Timestamps.forClients(at),
                record: record.map { Array($0) }, oldRecord: old.map { Array($0) },
                text: row.text.map { Array($0) }, oldText: row.oldText.map { Array($0) }, isReduced: row.isReduced,
                deletion: row.deletion)
        }
        return RecoveredRow(
            id: id, transaction: transaction, change: change, lossOf: row.isLoss ? row.table : nil,
            bytes: (record?.count ?? 0) + (old?.count ?? 0) + (row.text?.count ?? 0) + (row.oldText?.count ?? 0))
    }

    /// Today's table, without the columns that a record from before an alteration does not have.
    private mutating func fittingTable(
        _ oid: UInt32, of record: UnsafeBufferPointer<UInt8>?, _ operation: RowChange.Operation
    ) -> Table? {
        guard let table = catalog.table(oid) else { return nil }
        guard let record, !catalog.describesRecord(record, of: oid, after: operation) else { return table }
        let keys = RecordKeys.allKeys(of: record)
        if let known = shapes[oid], known.keys == keys { return known.table }
        let shape = table.restricted(to: record, older: nil)
        shapes[oid] = (keys, shape)
        return shape
    }
}
