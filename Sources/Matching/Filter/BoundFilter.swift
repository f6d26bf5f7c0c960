import Wire

/// A filter with columns and values resolved for a table.
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

    /// The index knows whether the record has the columns that the filter was bound to, and saves comparing them each time.
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

    /// The question for Postgres when the verdict is unknown.
    package func question(about record: inout RowRecord) -> PostgresCondition {
        let isSame = record.table === table || record.table.columns == table.columns
        var expressions: [String] = []
        var sources: [FilterCondition] = []
        var cells: [(name: Name, json: ArraySlice<UInt8>)] = []
        for condition in conditions {
            let value = value(of: condition, in: &record, isSame)
            guard condition.verdict(on: value) == .unknown,
                let place = isSame ? condition.index : Self.columnIndex(of: condition.column, in: record.table),
                let cell = record.cell(at: place)
            else { continue }
            let name = condition.column.name
            sources.append(condition.source)
            guard !record.isJSONNull(at: place) else {
                let null = "cast('null' as \(record.table.columns[place].sqlType.text))"
                expressions.append(SQLCondition.text(condition.source, on: null))
                continue
            }
            expressions.append(SQLCondition.text(condition.source, on: "r." + SQLText.identifier(name)))
            if !cells.contains(where: { $0.name == name }) { cells.append((name, cell)) }
        }
        let expression =
            expressions.count == 1 ? expressions[0] : expressions.map { "(\($0))" }.joined(separator: " and ")
        return PostgresCondition(
            table: record.table, expression: expressions.isEmpty ? "true" : expression, sources: sources,
            cells: JSONWriter.object { object in
                for (name, json) in cells { object.writeMember(name.text, json: json) }
            })
    }

    private func value(
        of condition: BoundCondition, in record: inout RowRecord, _ isSameLayout: Bool
    ) -> RowValue {
        if isSameLayout { return record.value(at: condition.index) }
        guard let place = Self.columnIndex(of: condition.column, in: record.table) else { return .absent }
        let column = record.table.columns[place]
        let value = record.value(at: place)
        // The column has changed its type since, so the filter's value cannot be compared with its values.
        if case .value = value, column.comparison != condition.column.comparison || column.type != condition.column.type
        {
            return .opaque
        }
        return value
    }

    private static func columnIndex(of column: Column, in table: Table) -> Int? {
        table.columns.firstIndex { $0.name == column.name }
    }
}

/// The result of evaluating a filter on a row.
package enum Verdict: Sendable, Equatable {
    case match
    case noMatch
    /// Only Postgres can decide.
    case unknown
}

/// A condition on a column of a table, ready for evaluation.
final class BoundCondition: Sendable {
    let column: Column
    /// The column's index in the table that the filter was bound to.
    let index: Int
    let test: BoundTest
    let isNegated: Bool
    /// The client's condition, from which SQL is made when Postgres has to decide.
    let source: FilterCondition

    init(column: Column, index: Int, test: BoundTest, isNegated: Bool, source: FilterCondition) {
        self.column = column
        self.index = index
        self.test = test
        self.isNegated = isNegated
        self.source = source
    }

    /// The values of an equality or list, by which a hash finds the row; nil for other tests.
    var equalTo: [ComparedValue]? {
        guard !isNegated else { return nil }
        switch test {
        case .equals(let value): return [value]
        case .member(let values, _): return Array(values)
        default: return nil
        }
    }

    func verdict(on value: RowValue) -> Verdict {
        switch value {
        case .absent: return .noMatch
        case .opaque: return .unknown
        case .null:
            guard let answer = test.forNull else { return .noMatch }
            return answer != isNegated ? .match : .noMatch
        case .omitted:
            // The value is not NULL but otherwise unknown, and one row too many is better than a lost row.
            if case .isNull = test { return isNegated ? .match : .noMatch }
            return .match
        case .value(let value):
            switch test.answer(for: value) {
            case .yes: return isNegated ? .noMatch : .match
            case .no: return isNegated ? .match : .noMatch
            case .null: return .noMatch
            case .unknown: return .unknown
            }
        }
    }
}

/// A bound condition's test of a column's value. SQL's logic has three values; nil is its NULL.
enum BoundTest: Sendable {
    case isNull
    case isBoolean(Bool)
    case equals(ComparedValue)
    /// SQL's IS DISTINCT FROM, which never returns NULL.
    case differs(ComparedValue)
    case ordered(FilterOperator, ComparedValue)
    case member(Set<ComparedValue>, hasNull: Bool)
    case like(LikePattern)
    /// A test that only Postgres can make. NULL needs no question, unless the test is IS DISTINCT FROM.
    case asked(isDistinct: Bool)

    /// The answer for a row whose column is NULL; nil is SQL's NULL.
    var forNull: Bool? {
        switch self {
        case .isNull: true
        case .isBoolean: false
        case .differs: true
        case .asked(let isDistinct): isDistinct ? true : nil
        // An empty list has no members, not even NULL.
        case .member(let values, let hasNull): values.isEmpty && !hasNull ? false : nil
        case .equals, .ordered, .like: nil
        }
    }

    enum Answer {
        case yes, no, null, unknown
    }

    func answer(for value: ComparedValue) -> Answer {
        switch self {
        case .isNull: .no
        case .isBoolean(let wanted): value == .ordinal(wanted ? 1 : 0) ? .yes : .no
        case .equals(let other): value == other ? .yes : .no
        case .differs(let other): value == other ? .no : .yes
        case .ordered(let name, let other): isOrdered(value, name, other) ? .yes : .no
        case .member(let values, let hasNull): values.contains(value) ? .yes : hasNull ? .null : .no
        case .like(let pattern):
            if case .bytes(let text) = value, let isMatch = pattern.matches(text) {
                isMatch ? .yes : .no
            } else {
                .unknown
            }
        case .asked: .unknown
        }
    }

    private func isOrdered(_ value: ComparedValue, _ name: FilterOperator, _ other: ComparedValue) -> Bool {
        switch name {
        case .lt: value.precedes(other)
        case .lte: !other.precedes(value)
        case .gt: other.precedes(value)
        default: !value.precedes(other)
        }
    }
}
