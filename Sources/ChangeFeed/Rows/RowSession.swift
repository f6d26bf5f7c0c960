import Hub
import Logging
import Matching
import Postgres
import Wire
import Workers

/// A session that reads rows as clients' roles, one read at a time. Confined to one thread, which waits for it.
struct RowSession: ~Copyable {
    private let conninfo: String
    private let limits: RowLimits
    private let logger: Logger
    private var connection: PostgresConnection?
    private var encoder = ChangeEncoder()
    private var reconnector: Reconnector

    private static let begin = SQLTemplate(withoutComments: RowsSQL.rowsBegin.text)

    init(conninfo: String, limits: RowLimits, logger: Logger) {
        self.conninfo = conninfo
        self.limits = limits
        self.logger = logger
        reconnector = Reconnector(
            logger: logger, lost: "Rows cannot be read for clients until the database is back",
            regained: "Rows can be read for clients again.")
    }

    /// - Returns: the result, and its size in bytes.
    mutating func outcome(of reading: RowReading) -> (RowReading.Outcome, bytes: Int) {
        // A session that was ended while idle shows it only now: a fresh one answers.
        for isLast in [connection == nil, true] {
            do {
                return try readParts(reading)
            } catch {
                connection = nil
                reconnector.connectionFailed(error)
                if isLast || (error as? PostgresError)?.kind == .timeout { break }
            }
        }
        return (.unavailable, 0)
    }

    /// - Throws: `PostgresError` if the database does not answer.
    private mutating func readParts(_ reading: RowReading) throws -> (RowReading.Outcome, bytes: Int) {
        let session = try openConnection()
        let isUTF8 = session.serverEncoding == "UTF8"
        var answers = [Result<RowReading.Answer, SubscriptionError>?](repeating: nil, count: reading.parts.count)
        // Entries that failed, as values without a JSON form do: they are read more carefully.
        var careful: Set<Int> = []
        let share = limits.bytes / max(1, reading.parts.count)
        let deadline = ContinuousClock.now + limits.together
        // Everything that can be read is read in one snapshot: after a failure, the rest is read again without the failed
        // entry.
        while true {
            let places = answers.indices.filter { answers[$0] == nil }
            let parts = places.map { place in
                reading.parts[place].statement.makeScript(
                    isUTF8: isUTF8, bytes: share, isCareful: careful.contains(place), as: reading.claims.role)
            }
            let script = Array(script(of: parts.map(\.sql), reading).utf8)
            // Postgres ends a text at a NUL.
            guard !script.contains(0) else {
                let problem = SubscriptionError("Rows cannot be read: the token or the request has a NUL in it")
                return (.read(snapshot: nil, answers: answers.map { _ in .failure(problem) }), 0)
            }
            let (finished, failure) = try session.results(of: script, within: limits.together + limits.network)
            let tables = finished.filter(\.isTable)
            if let failure {
                try session.runScript("rollback", within: limits.network)
                var left = tables.count - 1
                let failed = parts.firstIndex { part in
                    left -= part.tables
                    return left < 0
                }
                guard !tables.isEmpty, let place = failed.map({ places[$0] }) else {
                    return (.read(snapshot: nil, answers: answers.map { _ in .failure(Self.readError(failure)) }), 0)
                }
                if Self.mayBeOfValues(failure), ContinuousClock.now < deadline, careful.insert(place).inserted {
                    continue
                }
                answers[place] = .failure(
                    Self.readError(
                        failure, reading: reading.parts[place].statement.table,
                        within: limits.time(forEachOf: reading.parts.count)))
                guard ContinuousClock.now >= deadline else { continue }
                for place in places where answers[place] == nil {
                    answers[place] = .failure(
                        SubscriptionError("Rows were not read, because others of the same join took too long"))
                }
                continue
            }
            guard tables.count == parts.reduce(1, { $0 + $1.tables }), let snapshot = tables[0].text(0, 0) else {
                throw PostgresError(.connection, "Postgres did not answer what was read for a client.")
            }
            let time = tables[0].text(0, 1) ?? ""
            var bytes = 0
            var number = 0
            for (place, part) in zip(places, parts) {
                number += part.tables
                let result = tables[number]
                let answer = makeAnswer(result, reading.parts[place], reading, at: time)
                bytes += answer.rows.reduce(0) { $0 + $1.count }
                answers[place] = .success(answer)
            }
            return (.read(snapshot: snapshot, answers: answers.compactMap { $0 }), bytes)
        }
    }

    private func script(of statements: [String], _ reading: RowReading) -> String {
        let milliseconds = limits.time(forEachOf: reading.parts.count).milliseconds
        func literal(_ text: String) -> String { SQLText.literal(text) }
        let begin = Self.begin.filled([
            "limit": "\(milliseconds)", "locks": "\(milliseconds * 4 / 5)",
            "claims": literal(String(decoding: reading.claims.json, as: UTF8.self)),
            "subject": literal(reading.claims.subject?.text ?? ""), "name": literal(reading.claims.role.text),
            "role": SQLText.identifier(reading.claims.role), "topic": literal(reading.topic.text),
        ])
        return ([begin] + statements + ["rollback"]).joined(separator: ";\n")
    }

    private mutating func makeAnswer(
        _ result: QueryResult, _ part: RowReading.Part, _ reading: RowReading, at time: String
    ) -> RowReading.Answer {
        var answer = RowReading.Answer()
        answer.rows.reserveCapacity(result.count)
        let statement = part.statement
        for row in 0..<result.count {
            let record = result.bytes(row, 0).map { Array($0) }
            // A row that is too large is represented by its place, as a reduced change is by its key.
            let shown = record ?? result.bytes(row, 1).map { Array($0) } ?? Array("{}".utf8)
            guard reading.isForEvents else {
                answer.rows.append(shown)
                continue
            }
            let change = RowChange(
                id: 0, table: statement.table, operation: .insert, commitTimestamp: time, record: shown, oldRecord: nil,
                isReduced: record == nil)
            answer.rows.append(encoder.encodeData(for: change, view: part.view))
        }
        if result.count > 0, result.flag(result.count - 1, 2), statement.hasPlaces {
            answer.next = result.bytes(result.count - 1, 1).map { Array($0) }
        }
        return answer
    }

    private mutating func openConnection() throws -> PostgresConnection {
        if let connection, !connection.isBroken { return connection }
        let fresh = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(), logger: logger, within: limits.network)
        try fresh.runScript(RowsSQL.sessionOfRows, within: limits.network)
        try AbandonedStatements.shared.demandFew(on: fresh)
        reconnector.connectionOpened()
        connection = fresh
        return fresh
    }

    /// True if a failure may be due to a value's cast to json.
    private static func mayBeOfValues(_ failure: PostgresError) -> Bool {
        ![SQLState.queryCanceled, SQLState.lockNotAvailable, SQLState.insufficientPrivilege].contains(failure.sqlState)
    }

    // MARK: Messages to clients

    private static func readError(_ failure: PostgresError) -> SubscriptionError {
        SubscriptionError("Rows cannot be read: \(failure.message)")
    }

    private static func readError(
        _ failure: PostgresError, reading table: Table, within limit: Duration
    ) -> SubscriptionError {
        let name = "\(table.schema).\(table.name)"
        return switch failure.sqlState {
        case SQLState.queryCanceled:
            SubscriptionError(
                "The rows of \(name) took longer than \(limit.milliseconds) ms to read: create an index for the filter and the order "
                    + "on the table, or ask for less")
        case SQLState.lockNotAvailable:
            SubscriptionError(
                "The rows of \(name) cannot be read, because somebody has locked the table; try again later")
        default: SubscriptionError("The rows of \(name) cannot be read: \(failure.message)")
        }
    }
}
