/// Any number of questions in one statement, whatever their tables, rows and filters; equal ones are sent once.
///
/// The records become values of the table's own row type, so each expression sees the column's type and collation. For
/// callers:
/// - `sql` returns one row per distinct record: its number (`bigint`) and its answers (`boolean[]`), in any order.
/// - The answers of a table are a matrix of its records and its expressions: batches of one or two thousand questions cost
///   microseconds per question; in much larger ones, most of the matrix is wasted.
/// - The operators are looked up on the `search_path`: it should name the schemas of extensions such as citext.
/// - The statement fails as a whole if one expression does (the table was altered or dropped meanwhile) or it takes too
///   long. Then send the questions of each filter in a batch of its own: a failure there concerns only that filter.
package struct PostgresBatch: Sendable {
    package let sql: String
    /// The place of each question's answer.
    private let places: [(record: Int, answer: Int)]

    /// `conditions` must not be empty.
    package init(_ conditions: [PostgresCondition]) {
        var numbers: [UInt32: Int] = [:]
        var tables: [TableQuestions] = []
        var asked: [(table: Int, record: Int, expression: Int)] = []
        asked.reserveCapacity(conditions.count)
        for condition in conditions {
            let number = numbers[condition.table.oid] ?? tables.count
            if number == tables.count {
                numbers[condition.table.oid] = number
                tables.append(TableQuestions(condition.table))
            }
            let (record, expression) = tables[number].addCondition(condition)
            asked.append((number, record, expression))
        }
        var offsets: [Int] = []
        var count = 0
        for table in tables {
            offsets.append(count)
            count += table.recordCount
        }
        places = asked.map { (offsets[$0.table] + $0.record, $0.expression) }
        sql = zip(tables, offsets).map { $0.selectStatement(from: $1) }.joined(separator: " union all ")
    }

    /// The answers to the conditions, in the order given. `rows` are the result's, as Postgres writes them (`{t,f,NULL}`);
    /// a missing answer counts as false.
    package func parseAnswers(_ rows: [(record: Int, answers: String)]) -> [Bool] {
        var answers: [Int: [Bool]] = [:]
        for row in rows {
            let words = row.answers.utf8.drop { $0 != UInt8(ascii: "{") }.dropFirst()
            answers[row.record] = words.split(separator: UInt8(ascii: ",")).map { $0.first == UInt8(ascii: "t") }
        }
        return places.map { place in
            guard let record = answers[place.record], place.answer < record.count else { return false }
            return record[place.answer]
        }
    }
}

/// A question that the hub cannot answer itself: does a row meet conditions that depend on a collation, a regular
/// expression or a type that the hub does not compare?
package struct PostgresCondition: Sendable {
    package let table: Table
    /// A SQL expression on the row `r`, a value of the table's own row type.
    package let expression: String
    /// The client's conditions that the expression decides.
    package let sources: [FilterCondition]
    /// The columns that the expression reads, as a JSON object.
    package let cells: [UInt8]

    init(table: Table, expression: String, sources: [FilterCondition], cells: [UInt8]) {
        self.table = table
        self.expression = expression
        self.sources = sources
        self.cells = cells
    }
}

/// The part of a batch for one table.
struct TableQuestions {
    private let table: Table
    private var records: [[UInt8]] = []
    private var expressions: [(text: String, records: Set<Int>)] = []
    private var recordNumbers: [Text: Int] = [:]
    private var expressionNumbers: [Text: Int] = [:]

    /// Compared by bytes, because strings that Unicode calls equivalent are different patterns. Hashed in one call, unlike
    /// an array's own hash: that takes 0.6 µs for a row of 500 bytes, a thousand times over.
    private struct Text: Hashable {
        let bytes: [UInt8]

        func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    init(_ table: Table) {
        self.table = table
    }

    var recordCount: Int { records.count }

    mutating func addCondition(_ condition: PostgresCondition) -> (record: Int, expression: Int) {
        let cells = Text(bytes: condition.cells)
        let record = recordNumbers[cells] ?? records.count
        if record == records.count {
            recordNumbers[cells] = record
            records.append(condition.cells)
        }
        let key = Text(bytes: Array(condition.expression.utf8))
        let number = expressionNumbers[key] ?? expressions.count
        if number == expressions.count {
            expressionNumbers[key] = number
            expressions.append((condition.expression, []))
        }
        expressions[number].records.insert(record)
        return (record, number)
    }

    /// One query for all of the records: planning one query each would take Postgres more than linear time.
    func selectStatement(from offset: Int) -> String {
        let answers = expressions.map { answerExpression($0.text, for: $0.records) }.joined(separator: ", ")
        let literals = records.map { SQLText.literal(String(decoding: $0, as: UTF8.self)) }.joined(separator: ", ")
        return "select \(offset - 1) + v.n, array[\(answers)] "
            + "from unnest(array[\(literals)]::json[]) with ordinality as v(j, n), "
            + "json_populate_record(null::\(SQLText.name(of: table)), v.j) as r"
    }

    /// Limits an expression to the records that it was asked about: others may lack its columns.
    private func answerExpression(_ expression: String, for asked: Set<Int>) -> String {
        if asked.count == records.count { return "(\(expression)) is true" }
        let numbers = asked.sorted().map { "\($0 + 1)" }.joined(separator: ",")
        return "case when v.n = any ('{\(numbers)}'::bigint[]) then (\(expression)) is true end"
    }
}
