import Wire

/// A filter whose columns and values are those of a table.
package struct BoundFilter: Sendable {
    package let table: Table
    let conditions: [BoundCondition]

    init(table: Table, conditions: [BoundCondition]) {
        self.table = table
        self.conditions = conditions
    }

    /// The filter that every row of the table meets.
    package init(everyRowOf table: Table) {
        self.init(table: table, conditions: [])
    }

    package func evaluate(_ record: inout RowRecord) -> Verdict {
        let isSame = record.table === table || record.table.columns == table.columns
        return evaluate(&record, isSameLayout: isSame)
    }

    /// The index knows whether the record has the columns that the filter was bound to, and does not compare them each
    /// time.
    func evaluate(_ record: inout RowRecord, isSameLayout: Bool) -> Verdict {
        var verdict = Verdict.match
        for condition in conditions {
            switch condition.verdict(on: value(of: condition, in: &record, isSameLayout)) {
            case .match: continue
            case .noMatch: return .noMatch
            case .unknown: verdict = .unknown
            }
        }
        return verdict
    }

    /// What Postgres has to be asked where the verdict is unknown.
    package func question(about record: inout RowRecord) -> PostgresCondition {
        let isSame = record.table === table || record.table.columns == table.columns
        var expressions: [String] = []
        var sources: [FilterCondition] = []
        var cells: [(name: String, json: ArraySlice<UInt8>)] = []
        for condition in conditions {
            let value = value(of: condition, in: &record, isSame)
            guard condition.verdict(on: value) == .unknown,
                let place = isSame ? condition.index : Self.place(of: condition.column, in: record.table),
                let cell = record.cell(at: place)
            else { continue }
            let name = condition.column.name
            sources.append(condition.source)
            expressions.append(SQLCondition.text(condition.source, on: "r." + SQLText.identifier(name)))
            if !cells.contains(where: { $0.name == name }) { cells.append((name, cell)) }
        }
        let expression =
            expressions.count == 1 ? expressions[0] : expressions.map { "(\($0))" }.joined(separator: " and ")
        return PostgresCondition(
            table: record.table, expression: expressions.isEmpty ? "true" : expression, sources: sources,
            cells: Self.object(cells))
    }

    private func value(
        of condition: BoundCondition, in record: inout RowRecord, _ isSameLayout: Bool
    ) -> RowValue {
        if isSameLayout { return record.value(at: condition.index) }
        guard let place = Self.place(of: condition.column, in: record.table) else { return .absent }
        let column = record.table.columns[place]
        let value = record.value(at: place)
        // The column has another type by now, so the filter's value is none of its values.
        if case .value = value, column.comparison != condition.column.comparison || column.type != condition.column.type
        {
            return .opaque
        }
        return value
    }

    private static func place(of column: Column, in table: Table) -> Int? {
        table.columns.firstIndex { $0.name == column.name }
    }

    private static func object(_ cells: [(name: String, json: ArraySlice<UInt8>)]) -> [UInt8] {
        var out: [UInt8] = [UInt8(ascii: "{")]
        for (name, json) in cells {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            JSONString.encode(name, into: &out)
            out.append(UInt8(ascii: ":"))
            out.append(contentsOf: json)
        }
        out.append(UInt8(ascii: "}"))
        return out
    }
}
