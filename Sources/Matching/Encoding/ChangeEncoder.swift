import Wire

/// Writes the `data` of a `postgres_changes` event. Values are spliced as they came from Postgres, never written anew.
package struct ChangeEncoder: Sendable {
    /// What all changes of a table have in common, by its oid.
    private var tables: [UInt32: TableTexts] = [:]

    package init() {}

    /// The bytes for those who are shown `view`.
    package mutating func data(for change: RowChange, view: ChangeView = ChangeView()) -> [UInt8] {
        let texts = self.texts(for: change.table, view)
        let whole = write(change, texts, isReduced: false, hasError: change.isReduced)
        guard whole.count > ChangeLimits.dataBytes else { return whole }
        return write(change, texts, isReduced: true, hasError: true)
    }

    private mutating func texts(for table: Table, _ view: ChangeView) -> TableTexts.Viewed {
        // An altered table is another one.
        if tables[table.oid]?.table !== table { tables[table.oid] = TableTexts(table) }
        return tables[table.oid, default: TableTexts(table)].viewed(view)
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
            write(change.oldRecord, texts.shownOfOld, change.table, isReduced, into: &out)
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
