package import Postgres

/// The extent of stored changes: all transactions committed before `lsn`, and the first `rows` changes of one further
/// transaction.
package struct CapturePosition: Equatable, Sendable {
    package struct Part: Equatable, Sendable {
        /// The start of the transaction's commit record.
        package var commit: LSN
        package var rows: Int

        package init(commit: LSN, rows: Int) {
            self.commit = commit
            self.rows = rows
        }
    }

    package var lsn: LSN
    package var part: Part?

    package init(lsn: LSN, part: Part? = nil) {
        self.lsn = lsn
        self.part = part
    }
}

/// Changes that are stored together, in the order of the WAL, in groups that one statement each stores.
///
/// Confined to the capture's thread. Emptied and filled again after each store.
package final class CaptureBatch {
    /// The rows of one shape, as the parameters of the statement that stores them.
    package final class Group {
        package let shape: RowShape
        /// The rows' places in the batch, from 1.
        package let places = BinaryArray(type: 1007, of: 23)
        /// Letters of roost.change.op.
        package let operations = BinaryArray(type: 1002, of: 18)
        /// Commit times of the rows' transactions.
        package let times = BinaryArray(type: 1185, of: 1184)
        package let commits = BinaryArray(type: 3221, of: 3220)
        /// The texts of the columns passed to the statement: those of the new version except unchanged ones, then those
        /// of the old one.
        package let columns: [BinaryArray]
        /// The columns of the new version with which `columns` begins, by their places in the relation's description.
        package let newColumns: [Int]

        init(_ shape: RowShape) {
            self.shape = shape
            let versions = shape.versions
            newColumns = (versions.new ?? []).filter { !versions.unchanged.contains($0) }
            columns = (0..<(newColumns.count + (versions.old?.count ?? 0))).map { _ in BinaryArray(type: 1009, of: 25) }
        }

        package var arrays: [BinaryArray] { [places, operations, times, commits] + columns }

        fileprivate func removeAll() { for array in arrays { array.removeAll() } }
    }

    package private(set) var groups: [Group] = []
    /// All groups by shape, those without rows at present included.
    private var known: [RowShape: Group] = [:]
    package private(set) var rows = 0
    package private(set) var bytes = 0
    /// The number of transactions that ended in this batch.
    package var transactions = 0
    /// The ids, without epochs, of the transactions behind the rows, each once.
    package private(set) var xids: [UInt32] = []

    package init() {}

    package var isEmpty: Bool { rows == 0 }

    /// - Parameters:
    ///   - commit: the place of the transaction's commit in the WAL.
    ///   - time: of that commit, microseconds since 2000-01-01 UTC.
    ///   - xid: that transaction's id.
    func append(
        _ operation: UInt8, of relation: CapturedRelation, new: PgoutputMessage.Tuple?, old: PgoutputMessage.OldTuple?,
        commit: LSN, time: Int64, xid: UInt32
    ) {
        if xids.last != xid { xids.append(xid) }
        let shape = RowShape.classifyRow(relation, new: new, old: old)
        let group = group(of: shape)
        rows += 1
        group.places.append(Int32(rows))
        withUnsafeBytes(of: operation) { group.operations.append($0) }
        group.times.append(time)
        group.commits.append(commit.rawValue)
        bytes += Self.overhead
        var column = 0
        func appendValue(_ value: PgoutputMessage.Value) {
            if case .text(let text) = value {
                group.columns[column].append(text)
                bytes += text.count
            } else {
                group.columns[column].appendNull()
            }
            column += 1
        }
        for place in group.newColumns {
            guard let value = new?[place] else { continue }
            if case .unchanged = value, let old { appendValue(old.tuple[place]) } else { appendValue(value) }
        }
        for place in shape.versions.old ?? [] { if let value = old?.tuple[place] { appendValue(value) } }
    }

    /// The approximate size of a row besides its values.
    private static let overhead = 64

    private func group(of shape: RowShape) -> Group {
        if let group = known[shape] {
            if group.places.count == 0 { groups.append(group) }
            return group
        }
        // A table that is described again and again leaves behind shapes without rows.
        if known.count >= 500 { known = known.filter { $0.value.places.count > 0 } }
        let group = Group(shape)
        known[shape] = group
        groups.append(group)
        return group
    }

    func removeAll() {
        for group in groups { group.removeAll() }
        groups.removeAll(keepingCapacity: true)
        (rows, bytes, transactions) = (0, 0, 0)
        xids.removeAll(keepingCapacity: true)
    }
}
