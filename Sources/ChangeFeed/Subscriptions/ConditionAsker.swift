import Hub
import Logging

/// Asks Postgres what only it knows of a row: conditions on collations, regular expressions and types of its own.
///
/// It has a connection of its own, opened at the first question, because the feed's is in the middle of a window then.
struct ConditionAsker: ~Copyable {
    private let conninfo: String
    private let logger: Logger
    private var connection: PostgresConnection?
    private static let limit = Duration.seconds(5)
    /// Planning grows faster than the statement: 1,000 questions take 56 ms, 2,000 take 291.
    private static let questionsPerStatement = 1000

    init(conninfo: String, logger: Logger) {
        self.conninfo = conninfo
        self.logger = logger
    }

    /// One answer for each condition. Where Postgres does not answer, the row is delivered: a filter saves traffic, it
    /// does not protect, and a row too many is better than a row lost.
    mutating func answers(to conditions: [PostgresCondition]) -> [Bool] {
        var answers: [Bool] = []
        for start in stride(from: 0, to: conditions.count, by: Self.questionsPerStatement) {
            let end = min(start + Self.questionsPerStatement, conditions.count)
            answers += answersAtOnce(to: Array(conditions[start..<end]))
        }
        return answers
    }

    private mutating func answersAtOnce(to conditions: [PostgresCondition]) -> [Bool] {
        do {
            return try ask(conditions)
        } catch let error as PostgresError where error.kind == .server && conditions.count > 1 {
            // One of them is faulty, its table altered or dropped meanwhile; the others keep their answers.
            return conditions.map { answerAlone($0) }
        } catch {
            return giveUp(conditions.count, error)
        }
    }

    private mutating func answerAlone(_ condition: PostgresCondition) -> Bool {
        do { return try ask([condition]).first ?? true } catch { return giveUp(1, error)[0] }
    }

    private mutating func giveUp(_ count: Int, _ error: any Error) -> [Bool] {
        logger.warning(
            "delivering \(count) changes unfiltered, because Postgres did not decide their filters: \(error)")
        if (error as? PostgresError)?.kind != .server { connection = nil }
        return Array(repeating: true, count: count)
    }

    private mutating func ask(_ conditions: [PostgresCondition]) throws -> [Bool] {
        let batch = PostgresBatch(conditions)
        let result = try open().query(batch.sql, within: Self.limit)
        let rows = (0..<result.count).map { row in
            (record: Int(result.integer(row, 0) ?? 0), answers: result.text(row, 1) ?? "")
        }
        return batch.answers(rows)
    }

    private mutating func open() throws -> PostgresConnection {
        if let connection, !connection.isBroken { return connection }
        let fresh = try PostgresConnection(
            ConnectionOptions(conninfo: conninfo), waiter: PlainWaiter(), logger: logger, within: Self.limit)
        connection = fresh
        return fresh
    }
}
