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
