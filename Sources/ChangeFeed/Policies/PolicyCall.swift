import Hub
import Matching
import Postgres
import Wire
import Workers

/// One call of a policy function: what is sent, and which answer belongs to whom.
struct PolicyCall {
    let records: PolicyRecords
    /// Indices of the question's subjects, in the order in which they are sent.
    private(set) var subjects: [Int] = []
    /// The records of each subject sent, ascending and without duplicates.
    private(set) var picks: [[Int]] = []
    /// Number of subjects whose claims cannot be a text in Postgres.
    private(set) var unsendable = 0

    init(_ question: PolicyQuestion, _ description: PolicyDescription) {
        records = PolicyRecords(question, description)
        // A record is already among a subject's if it bears the subject's stamp.
        var stamps = [Int](repeating: -1, count: records.records.count)
        for (index, subject) in question.subjects.enumerated() {
            var wanted: [Int] = []
            wanted.reserveCapacity(subject.rows.count)
            for row in subject.rows {
                guard let place = records.places[row], stamps[place] != index else { continue }
                stamps[place] = index
                wanted.append(place)
            }
            guard !wanted.isEmpty else { continue }
            guard Self.isSendable(subject) else {
                unsendable += 1
                continue
            }
            subjects.append(index)
            picks.append(wanted)
        }
    }

    /// True if Postgres can receive the texts: it ends a text at a NUL.
    private static func isSendable(_ subject: PolicyQuestion.Subject) -> Bool {
        !subject.claims.json.contains(0) && !(subject.claims.subject ?? "").utf8.contains(0)
            && !(subject.topic ?? "").utf8.contains(0)
    }

    /// The same call for a single one of its subjects.
    func singleSubject(_ position: Int) -> PolicyCall {
        var call = self
        call.subjects = [subjects[position]]
        call.picks = [picks[position]]
        return call
    }

    /// The rows of a subject whose records are among `seen`.
    func rows(of subject: PolicyQuestion.Subject, seen: Set<Int>) -> [Int] {
        subject.rows.filter { row in records.places[row].map(seen.contains) ?? false }
    }
}

/// A question's rows as sent: with the columns that policies look at, and without duplicates by these columns.
struct PolicyRecords {
    private(set) var records: [[UInt8]] = []
    /// The record of each of the question's rows; nil for a row that lacks a column and so cannot be decided.
    private(set) var places: [Int?] = []
    /// A column that some row lacks.
    private(set) var missing: Name?
    /// A column for which some row does not say whether a null is JSON's or SQL's.
    private(set) var ambiguous: Name?

    /// A column that policies look at.
    private struct Wanted {
        let name: Name
        let key: [UInt8]
        let isJSON: Bool
        let holdsJSON: Bool

        /// True if a value may be a different one than was written.
        ///
        /// - Parameter nulls: the record's statement about its nulls (`JudgedRecord`).
        func isAmbiguous(_ value: ArraySlice<UInt8>, _ nulls: JSON?) -> Bool {
            isJSON && nulls == nil && JudgedRecord.isNull(value)
                || holdsJSON && nulls?.kind != .object && !value.ranges(of: Array("null".utf8)).isEmpty
        }
    }

    private enum Reduced {
        case record([UInt8])
        case lacking(Name)
        case ambiguous(Name)
    }

    init(_ question: PolicyQuestion, _ description: PolicyDescription) {
        let wanted = description.columnsSent.sorted().map { name in
            Wanted(
                name: name, key: RecordKeys.encodeKey(name), isJSON: description.jsonColumns.contains(name),
                holdsJSON: description.nestedColumns.contains(name))
        }
        var numbers: [[UInt8]: Int] = [:]
        places.reserveCapacity(question.rows.count)
        for row in question.rows {
            let record: [UInt8]
            switch Self.reduceRow(row, to: wanted) {
            case .record(let reduced): record = reduced
            case .lacking(let column):
                missing = column
                places.append(nil)
                continue
            case .ambiguous(let column):
                ambiguous = column
                places.append(nil)
                continue
            }
            let number = numbers[record] ?? records.count
            if number == records.count {
                numbers[record] = number
                records.append(record)
            }
            places.append(number)
        }
    }

    /// The members of these columns, in their order, and the texts of the JSON nulls among them, if any.
    private static func reduceRow(_ row: [UInt8], to wanted: [Wanted]) -> Reduced {
        var found = [ArraySlice<UInt8>?](repeating: nil, count: wanted.count)
        var nulls: JSON?
        JSON(trusted: row[...]).forEachMember { member in
            if let index = wanted.firstIndex(where: { member.rawKey.elementsEqual($0.key) }) {
                found[index] = member.value.bytes
            } else if member.rawKey.isEmpty {
                nulls = member.value
            }
        }
        var out = JSONWriter(reserving: 256)
        out.openObject()
        for (column, value) in zip(wanted, found) {
            guard let value else { return .lacking(column.name) }
            if column.isAmbiguous(value, nulls) { return .ambiguous(column.name) }
            out.writeKey(raw: column.key[...])
            out.writeValue(json: value)
        }
        var texts: [JSON.Member] = []
        var other: Name?
        nulls?.forEachMember { null in
            guard let column = wanted.first(where: { null.rawKey.elementsEqual($0.key) }) else { return }
            texts.append(null)
            if !column.isJSON { other = column.name }
        }
        // The table was altered after it was described.
        if let other { return .ambiguous(other) }
        if !texts.isEmpty {
            out.writeKey(JudgedRecord.marker)
            out.object { object in
                for text in texts { object.writeMember(text) }
            }
        }
        out.closeObject()
        return .record(out.bytes)
    }
}

/// The script that asks questions, each in a transaction of its own; each returns one result with rows.
struct PolicyScript {
    private(set) var bytes: [UInt8] = []

    /// - Parameter patience: time limit of one statement. A wait for a lock ends a little earlier, so that it is not
    ///   mistaken for a hanging policy.
    mutating func append(
        _ call: PolicyCall, to question: PolicyQuestion, _ function: PolicyFunction, patience: Duration
    ) {
        let limit = max(patience.milliseconds, 10)
        let lockLimit = limit * 4 / 5
        addText("begin read write;set local statement_timeout=\(limit);set local lock_timeout=\(lockLimit);")
        if let revival = question.revival { addText(revival.sql) }
        if let preparation = function.preparation { addText(preparation + ";") }
        if function.isReadOnly { addText("set transaction read only;") }
        addText("set local role \(SQLText.identifier(question.role));select*from pg_temp.\(function.name)(")
        let subjects = call.subjects.map { question.subjects[$0] }
        addArray(subjects.lazy.map(\.claims.json), as: "text")
        addText(",")
        addArray(subjects.lazy.map { Array(($0.claims.subject ?? "").utf8) }, as: "text")
        addText(",")
        addArray(subjects.lazy.map { Array(($0.topic ?? "").utf8) }, as: "text")
        addText(",")
        var end = 0
        addNumbers(
            call.picks.lazy.map { picks in
                end += picks.count
                return end
            })
        addText(",")
        addNumbers(call.picks.lazy.joined().map { $0 + 1 })
        addText(",")
        addArray(call.records.records, as: "json")
        addText(",\(question.wantsTablesRead),'\(lockLimit) ms');rollback;")
    }

    private mutating func addText(_ text: String) { bytes += text.utf8 }

    private mutating func addNumbers(_ numbers: some Sequence<Int>) {
        var separator = "'{"
        for number in numbers {
            addText(separator)
            addText("\(number)")
            separator = ","
        }
        addText(separator == "," ? "}'" : "'{}'")
    }

    private mutating func addArray(_ values: some Sequence<[UInt8]>, as type: String) {
        var separator = "array["
        for value in values {
            addText(separator)
            addLiteral(value)
            separator = ","
        }
        addText(separator == "," ? "]::\(type)[]" : "'{}'")
    }

    /// Adds a literal that has the same meaning under any `standard_conforming_strings`. `value` has no NUL.
    private mutating func addLiteral(_ value: [UInt8]) {
        let quote = UInt8(ascii: "'")
        let escape = UInt8(ascii: "\\")
        // A space in front: an E must not touch the text before it.
        if value.contains(escape) { addText(" E") }
        bytes.append(quote)
        for byte in value {
            if byte == quote || byte == escape { bytes.append(byte) }
            bytes.append(byte)
        }
        bytes.append(quote)
    }
}
