package import Wire

/// Writes the `data` of a `postgres_changes` event. Values are copied as they came from Postgres, never encoded again.
package struct ChangeEncoder: Sendable {
    /// The texts shared by all changes of a table, by the table's oid.
    private var tables: [UInt32: TableTexts] = [:]

    package init() {}

    /// The JSON of a change for subscribers with this view.
    package mutating func encodeData(for change: RowChange, view: ChangeView = ChangeView()) -> [UInt8] {
        let texts = self.lookUpTexts(for: change.table, view)
        let whole = write(change, texts, isReduced: false, hasError: change.isReduced)
        guard whole.count > ChangeLimits.dataBytes else { return whole }
        return write(change, texts, isReduced: true, hasError: true)
    }

    private mutating func lookUpTexts(for table: Table, _ view: ChangeView) -> TableTexts.Viewed {
        // An altered table is another `Table`.
        if tables[table.oid]?.table !== table { tables[table.oid] = TableTexts(table) }
        return tables[table.oid, default: TableTexts(table)].lookUpView(view)
    }

    private func write(
        _ change: RowChange, _ texts: TableTexts.Viewed, isReduced: Bool, hasError: Bool
    ) -> [UInt8] {
        var out: [UInt8] = []
        out.reserveCapacity(
            texts.head.count + texts.columns.count + (change.record?.count ?? 0) + (change.oldRecord?.count ?? 0) + 160)
        out.append(contentsOf: texts.head)
        JSONString.encode(change.commitTimestamp, into: &out)
        out.append(contentsOf: #","type":""#.utf8)
        out.append(contentsOf: change.operation.rawValue.utf8)
        out.append(contentsOf: #"","columns":"#.utf8)
        out.append(contentsOf: texts.columns)
        if change.operation != .delete {
            out.append(contentsOf: #","record":"#.utf8)
            write(change.record, texts.shown, change.table, isReduced, into: &out)
        }
        if change.operation != .insert {
            out.append(contentsOf: #","old_record":"#.utf8)
            // An UPDATE without an old record left the replica identity, which is all that is shown, unchanged.
            let old = change.oldRecord ?? (change.operation == .update ? change.record : nil)
            write(old, texts.shownOfOld, change.table, isReduced, into: &out)
        }
        out.append(
            contentsOf: hasError ? #","errors":["Error 413: Payload Too Large"]}"#.utf8 : #","errors":null}"#.utf8)
        return out
    }

    private func write(
        _ record: [UInt8]?, _ shown: TableTexts.Columns, _ table: Table, _ isReduced: Bool, into out: inout [UInt8]
    ) {
        guard let record, shown != .none else {
            out.append(contentsOf: "{}".utf8)
            return
        }
        if shown == .all, !isReduced {
            out.append(contentsOf: record)
            return
        }
        out.append(UInt8(ascii: "{"))
        var isFirst = true
        var fields = RowFields(table: table)
        fields.forEach(in: record[...]) { column, rawKey, value in
            guard shown.includes(column), !isReduced || value.count <= ChangeLimits.reducedValueBytes else { return }
            out.append(contentsOf: isFirst ? "\"".utf8 : ",\"".utf8)
            isFirst = false
            out.append(contentsOf: rawKey)
            out.append(contentsOf: "\":".utf8)
            out.append(contentsOf: value)
        }
        out.append(UInt8(ascii: "}"))
    }
}

/// The part of a change that a subscriber is shown.
package struct ChangeView: Hashable, Sendable {
    /// The columns that the subscription asked for; nil for all.
    package let selection: Selection?
    /// The columns that the role may SELECT; nil for all.
    package let granted: Set<Name>?
    package let oldRecord: OldRecord

    package enum OldRecord: Hashable, Sendable {
        /// The columns of the replica identity, as Postgres would show them to logical replication.
        case replicaIdentity
        /// The primary key alone: nothing else may be shown of a row version whose visibility cannot be judged, or that the
        /// subscriber could not see.
        case primaryKey
    }

    package init(
        selection: Selection? = nil, granted: Set<Name>? = nil, oldRecord: OldRecord = .replicaIdentity
    ) {
        self.selection = selection
        self.granted = granted
        self.oldRecord = oldRecord
    }

    func showsColumn(_ column: Column) -> Bool {
        (selection?.includes(column) ?? true) && (granted?.contains(column.name) ?? true)
    }

    func showsOldColumn(_ column: Column) -> Bool {
        showsColumn(column)
            && (oldRecord == .primaryKey ? column.isPrimaryKey && column.isReplicaIdentity : column.isReplicaIdentity)
    }
}

/// The parts of `data` that all changes of a table have in common, once for each view of the table.
struct TableTexts: Sendable {
    let table: Table
    /// The texts made for each view. Their number is bounded, because clients choose their columns.
    private var views: [ChangeView: Viewed] = [:]
    private static let viewLimit = 64

    init(_ table: Table) {
        self.table = table
    }

    /// The columns that a record shows.
    enum Columns: Equatable, Sendable {
        case none
        case all
        case some([Bool])

        /// A member that is no longer a column is shown only with the whole record.
        func includes(_ column: Int?) -> Bool {
            switch self {
            case .none: false
            case .all: true
            case .some(let shown): column.map { shown[$0] } ?? false
            }
        }

        /// - Parameter isWhole: true if members that are not columns of the table may be shown too.
        init(_ shown: [Bool], isWhole: Bool) {
            self = isWhole && shown.allSatisfy { $0 } ? .all : shown.contains(true) ? .some(shown) : .none
        }
    }

    struct Viewed: Sendable {
        /// The text from the opening brace up to the commit timestamp.
        let head: [UInt8]
        /// The value of `columns`.
        let columns: [UInt8]
        let shown: Columns
        let shownOfOld: Columns
    }

    mutating func lookUpView(_ view: ChangeView) -> Viewed {
        if let known = views[view] { return known }
        if views.count >= Self.viewLimit { views.removeAll() }
        let made = makeView(view)
        views[view] = made
        return made
    }

    private func makeView(_ view: ChangeView) -> Viewed {
        let isShown = table.columns.map { view.showsColumn($0) }
        let isShownOfOld = table.columns.map { view.showsOldColumn($0) }
        var head = Array(#"{"schema":"#.utf8)
        JSONString.encode(table.schema.text, into: &head)
        head.append(contentsOf: #","table":"#.utf8)
        JSONString.encode(table.name.text, into: &head)
        head.append(contentsOf: #","commit_timestamp":"#.utf8)
        var columns = JSONWriter()
        columns.array(zip(table.columns, isShown).lazy.filter(\.1).map(\.0)) { columns, column in
            columns.object {
                $0.writeMember("name", column.name.text)
                $0.writeMember("type", column.type.text)
            }
        }
        let isWhole = view.granted == nil
        return Viewed(
            head: head, columns: columns.bytes, shown: Columns(isShown, isWhole: isWhole),
            shownOfOld: Columns(isShownOfOld, isWhole: isWhole))
    }
}
