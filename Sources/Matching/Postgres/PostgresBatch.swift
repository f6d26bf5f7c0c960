/// Many questions in one statement, however many tables, rows and filters they are about; equal ones are asked once.
///
/// The rows come back to life as values of the table's own row type, so each expression sees the column's type and
/// collation. What a caller has to know:
/// - `sql` gives one row per distinct record: its number (`bigint`) and its answers (`boolean[]`), in any order.
/// - The answers of a table are a matrix of its records and its expressions: batches of one or two thousand questions
///   cost microseconds each, much larger ones waste.
/// - The operators are looked up on the `search_path`: it should name the schemas of extensions such as citext.
/// - The statement fails as a whole where one expression does (the table was altered or dropped meanwhile), or takes too
///   long. Ask again with the questions of one filter per batch: what fails then concerns that filter alone.
package struct PostgresBatch: Sendable {
    package let sql: String
    /// Where the answer to each question stands.
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
            let (record, expression) = tables[number].ask(condition)
            asked.append((number, record, expression))
        }
        var offsets: [Int] = []
        var count = 0
        for table in tables {
            offsets.append(count)
            count += table.recordCount
        }
        places = asked.map { (offsets[$0.table] + $0.record, $0.expression) }
        sql = zip(tables, offsets).map { $0.select(from: $1) }.joined(separator: " union all ")
    }

    /// Whether each condition is met, in the order in which they were given. `rows` are the result's, as Postgres
    /// writes them (`{t,f,NULL}`); what is not answered is not met.
    package func answers(_ rows: [(record: Int, answers: String)]) -> [Bool] {
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

/// A question the hub cannot answer itself: whether a row meets conditions that depend on a collation, a regular
/// expression or a type it does not compare.
package struct PostgresCondition: Sendable {
    package let table: Table
    /// A SQL expression on the row `r`, a value of the table's own row type.
    package let expression: String
    /// What the client wrote, of what the expression decides.
    package let sources: [FilterCondition]
    /// The columns that the expression looks at, as a JSON object.
    package let cells: [UInt8]

    init(table: Table, expression: String, sources: [FilterCondition], cells: [UInt8]) {
        self.table = table
        self.expression = expression
        self.sources = sources
        self.cells = cells
    }
}

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
        let number = expressionNumbers[key] ?? expressions.count
        if number == expressions.count {
            expressionNumbers[key] = number
            expressions.append((condition.expression, []))
        }
        expressions[number].records.insert(record)
        return (record, number)
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
