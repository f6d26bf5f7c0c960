import Hub
import Matching
import Postgres

/// The statements that ask questions, each in a transaction of its own; each gives one result with rows.
struct PolicyScript {
    private(set) var bytes: [UInt8] = []

    /// - Parameter patience: how long one statement may take. A wait for a lock ends a little earlier, so that it is
    ///   not taken for a policy that hangs.
    mutating func append(
        _ call: PolicyCall, to question: PolicyQuestion, _ function: PolicyFunction, patience: Duration
    ) {
        let limit = max(patience.milliseconds, 10)
        let lockLimit = limit * 4 / 5
        add("begin read write;set local statement_timeout=\(limit);set local lock_timeout=\(lockLimit);")
        if let preparation = function.preparation { add(preparation + ";") }
        if function.isReadOnly { add("set transaction read only;") }
        add("set local role \(SQLText.identifier(question.role));select*from pg_temp.\(function.name)(")
        let subjects = call.subjects.map { question.subjects[$0] }
        add(subjects.lazy.map(\.claims.json), as: "text")
        add(",")
        add(subjects.lazy.map { Array(($0.claims.subject ?? "").utf8) }, as: "text")
        add(",")
        add(subjects.lazy.map { Array(($0.topic ?? "").utf8) }, as: "text")
        add(",")
        var end = 0
        add(
            call.picks.lazy.map { picks in
                end += picks.count
                return end
            })
        add(",")
        add(call.picks.lazy.joined().map { $0 + 1 })
        add(",")
        add(call.records.records, as: "json")
        add(",\(question.wantsTablesRead),'\(lockLimit) ms');rollback;")
    }

    private mutating func add(_ text: String) { bytes += text.utf8 }

    private mutating func add(_ numbers: some Sequence<Int>) {
        var separator = "'{"
        for number in numbers {
            add(separator)
            add("\(number)")
            separator = ","
        }
        add(separator == "," ? "}'" : "'{}'")
    }

    private mutating func add(_ values: some Sequence<[UInt8]>, as type: String) {
        var separator = "array["
        for value in values {
            add(separator)
            literal(value)
            separator = ","
        }
        add(separator == "," ? "]::\(type)[]" : "'{}'")
    }

    /// Means the same whatever `standard_conforming_strings` says. `value` has no NUL.
    private mutating func literal(_ value: [UInt8]) {
        let quote = UInt8(ascii: "'")
        let escape = UInt8(ascii: "\\")
        // A space in front: an E must not touch what comes before.
        if value.contains(escape) { add(" E") }
        bytes.append(quote)
        for byte in value {
            if byte == quote || byte == escape { bytes.append(byte) }
            bytes.append(byte)
        }
        bytes.append(quote)
    }
}
