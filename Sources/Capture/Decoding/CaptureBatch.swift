package import Postgres

/// How far changes are stored: all transactions whose commit lies before `lsn`, and of one further the first `rows` changes.
package struct CapturePosition: Equatable, Sendable {
    package struct Part: Equatable, Sendable {
        /// Where the transaction's commit record begins.
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

/// Changes that are stored together: in the order of the WAL, sorted into groups that one statement each stores.
///
/// Confined to the capture's thread; emptied and filled again.
package final class CaptureBatch {
    /// The rows of one shape, as the parameters of the statement that stores them.
    package final class Group {
        package let shape: RowShape
        /// The row's place in the batch, from 1.
        package let places = BinaryArray(type: 1007, of: 23)
        /// The letter of roost.change.op.
        package let operations = BinaryArray(type: 1002, of: 18)
        /// When the row's transaction was committed.
        package let times = BinaryArray(type: 1185, of: 1184)
        package let commits = BinaryArray(type: 3221, of: 3220)
        /// The texts of the columns that the statement is given: the new version's but for what did not change, then the
        /// old one's.
        package let columns: [BinaryArray]
        /// Which of the new version's columns, by their places in the relation's description, `columns` begins with.
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
    /// How many of them have rows; the others wait for some.
    private var known: [RowShape: Group] = [:]
    package private(set) var rows = 0
    package private(set) var bytes = 0
    /// How many transactions ended in it.
    package var transactions = 0
    /// The ids, without epochs, of the transactions that changed its rows, once each.
    package private(set) var xids: [UInt32] = []

    package init() {}

    package var isEmpty: Bool { rows == 0 }

    /// - Parameters:
    ///   - commit: where the commit of the row's transaction lies.
    ///   - time: of that commit, microseconds since 2000-01-01 UTC.
    ///   - xid: that transaction's id.
    func append(
        _ operation: UInt8, of relation: CapturedRelation, new: PgoutputMessage.Tuple?, old: PgoutputMessage.OldTuple?,
        commit: LSN, time: Int64, xid: UInt32
    ) {
        if xids.last != xid { xids.append(xid) }
        let shape = RowShape.sort(relation, new: new, old: old)
        let group = group(of: shape)
        rows += 1
        group.places.append(Int32(rows))
        withUnsafeBytes(of: operation) { group.operations.append($0) }
        group.times.append(time)
        group.commits.append(commit.rawValue)
        bytes += Self.overhead
        var column = 0
        func put(_ value: PgoutputMessage.Value) {
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
            if case .unchanged = value, let old { put(old.tuple[place]) } else { put(value) }
        }
        for place in shape.versions.old ?? [] { if let value = old?.tuple[place] { put(value) } }
    }

    /// What a row takes beside its values, about.
    private static let overhead = 64

    private func group(of shape: RowShape) -> Group {
        if let group = known[shape] {
            if group.places.count == 0 { groups.append(group) }
            return group
        }
        // A table that is described anew again and again leaves shapes that no row has any more.
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
