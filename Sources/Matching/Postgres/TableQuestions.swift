/// The part of a batch that is about one table.
struct TableQuestions {
    private let table: Table
    private var records: [[UInt8]] = []
    private var expressions: [(text: String, records: Set<Int>)] = []
    private var recordNumbers: [Text: Int] = [:]
    private var expressionNumbers: [Text: Int] = [:]

    /// Compared by bytes: strings that Unicode calls equivalent are different patterns. Hashed all at once, which an array's own
    /// hash is not: for a row of 500 bytes that is 0.6 µs, a thousand times.
    private struct Text: Hashable {
        let bytes: [UInt8]

        func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    init(_ table: Table) {
        self.table = table
    }

    var recordCount: Int { records.count }

    mutating func ask(_ condition: PostgresCondition) -> (record: Int, expression: Int) {
        let cells = Text(bytes: condition.cells)
        let record = recordNumbers[cells] ?? records.count
        if record == records.count {
            recordNumbers[cells] = record
            records.append(condition.cells)
        }
        let key = Text(bytes: Array(condition.expression.utf8))
        let expression = expressionNumbers[key] ?? expressions.count
        if expression == expressions.count {
            expressionNumbers[key] = expression
            expressions.append((condition.expression, []))
        }
        expressions[expression].records.insert(record)
        return (record, expression)
    }

    /// One query for all of the records: one for each would cost Postgres more than linear time to plan.
    func select(from offset: Int) -> String {
        let answers = expressions.map { answer($0.text, for: $0.records) }.joined(separator: ", ")
        let literals = records.map { SQLText.literal(String(decoding: $0, as: UTF8.self)) }.joined(separator: ", ")
        return "select \(offset - 1) + v.n, array[\(answers)] "
            + "from unnest(array[\(literals)]::json[]) with ordinality as v(j, n), "
            + "json_populate_record(null::\(SQLText.name(of: table)), v.j) as r"
    }

    /// An expression is not evaluated for records that nobody asked it of: they may lack its columns.
    private func answer(_ expression: String, for asked: Set<Int>) -> String {
        if asked.count == records.count { return "(\(expression)) is true" }
        let numbers = asked.sorted().map { "\($0 + 1)" }.joined(separator: ",")
        return "case when v.n = any ('{\(numbers)}'::bigint[]) then (\(expression)) is true end"
    }
}
