import ChangeFeed
import Hub
import Logging
import Matching
import Postgres
import Wire
import Workers

/// Asks the operator's statement for the audience of changes, and tolerates one that fails.
struct AudienceQuery: ~Copyable {
    /// A user named by the statement.
    struct Candidate {
        let index: Int
        let user: Name
        let variables: [UInt8]
        let isMuted: Bool
        let badge: Int?
        var hasDevice: Bool
        /// True if a phone or an activity is registered.
        let isRegistered: Bool
    }

    private var entitlement: Entitlement
    private let tokens: AppTokens?
    /// The time for one call: questions not asked by then are asked another time.
    private static let patience = Duration.seconds(5)

    /// Whether the application itself keeps phones.
    var hasTokens: Bool { tokens != nil }

    init(conninfo: String, tokens: AppTokens?, logger: Logger) {
        self.tokens = tokens
        entitlement = Entitlement(conninfo: conninfo, logger: logger)
    }

    /// - Throws: `PostgresError` if the database does not answer.
    mutating func audience(
        for changes: [RowChange], _ statement: AudienceStatement, on connection: PostgresConnection,
        _ warnings: inout RateLimitedLog
    ) throws -> AlertAudience {
        var audience = AlertAudience()
        let notifications = NotificationsAsked(changes, statement, &audience, &warnings)
        var candidates = try candidates(
            AudienceQuestion.asked(changes) + notifications.asked, statement, connection, &audience, &warnings)
        candidates = notifications.withNamed(candidates, &audience, &warnings)
        try findPhones(of: &candidates, areKnown: !notifications.nameUsers, &audience, connection, &warnings)
        let heard = candidates.filter { !changes[$0.index].isNotification }
        let decided = try entitlement.members(among: heard, hearingOf: changes, on: connection, &warnings)
        audience.members = decided.members + notifications.members(among: candidates)
        audience.unanswered = Array(decided.locked.union(audience.unanswered)).sorted()
        return audience
    }

    /// Splits the question in halves if the statement fails: one row that it fails for must not block the others.
    private func candidates(
        _ asked: [AudienceQuestion.Asked], _ statement: AudienceStatement, _ connection: PostgresConnection,
        _ audience: inout AlertAudience, _ warnings: inout RateLimitedLog
    ) throws -> [Candidate] {
        let end = ContinuousClock.now + Self.patience
        var parts = Array(AudienceQuestion.pieces(of: asked).reversed())
        var candidates: [Candidate] = []
        var isRehearsed = false
        while let part = parts.popLast() {
            guard ContinuousClock.now < end else {
                audience.unanswered += part.map(\.index)
                continue
            }
            do {
                let rows = try statement.run(AudienceQuestion.json(part), on: connection)
                candidates += Self.candidates(rows, part)
            } catch let error as PostgresError where !connection.isBroken {
                if error.isOfTheMoment {
                    warnings.logWarning(Self.delayed(error))
                    guard part.count > 1 else {
                        audience.unanswered += part.map(\.index)
                        continue
                    }
                    // One row that waits for a lock, or fails as if it did, must not block the others; a table that all wait for does.
                    if !isRehearsed, !error.isOutOfTime, try rehearse(statement, connection) != nil {
                        audience.unanswered += part.map(\.index) + parts.flatMap { $0.map(\.index) }
                        return candidates
                    }
                } else if !isRehearsed, let fault = try rehearse(statement, connection) {
                    warnings.logWarning(Self.broken(fault))
                    audience.failed += part.count + parts.reduce(0) { $0 + $1.count }
                    return candidates
                } else if part.count == 1 {
                    warnings.logWarning(Self.refused(part[part.startIndex], error))
                    audience.failed += 1
                    continue
                }
                isRehearsed = true
                let middle = part.startIndex + part.count / 2
                parts += [part[middle...], part[..<middle]]
            }
        }
        return candidates
    }

    /// Finds the candidates with a phone: one that they registered, or one that the application keeps. Those without any registration
    /// are left out, and those for whom the application gives no answer are asked about another time.
    ///
    /// - Parameter areKnown: whether the registrations of all candidates are known.
    private func findPhones(
        of candidates: inout [Candidate], areKnown: Bool, _ audience: inout AlertAudience,
        _ connection: PostgresConnection, _ warnings: inout RateLimitedLog
    ) throws {
        guard tokens != nil || !areKnown else { return }
        let users = Set(candidates.map(\.user))
        let answer = try tokens?.refresh(users, on: connection, &warnings) ?? AppTokens.Answer()
        if !areKnown || answer.isChanged {
            let found = try AppTokens.usersWithPhones(among: users, on: connection)
            for index in candidates.indices { candidates[index].hasDevice = found.contains(candidates[index].user) }
        }
        candidates = candidates.filter { candidate in
            if candidate.hasDevice { return true }
            if answer.unanswered.contains(candidate.user) {
                audience.unanswered.append(candidate.index)
                return false
            }
            return candidate.isRegistered
        }
    }

    /// Returns the statement's error for an empty question; nil if it does not fail.
    private func rehearse(_ statement: AudienceStatement, _ connection: PostgresConnection) throws -> PostgresError? {
        do {
            _ = try statement.run("[]", on: connection)
            return nil
        } catch let error as PostgresError where !connection.isBroken {
            return error
        }
    }

    /// Reads the candidates. Rows about no change in the question, and repetitions, are left out.
    private static func candidates(_ rows: QueryResult, _ part: ArraySlice<AudienceQuestion.Asked>) -> [Candidate] {
        struct Heard: Hashable {
            let index: Int
            let user: Name
        }
        let indices = Set(part.map(\.index))
        var seen = Set<Heard>()
        return (0..<rows.count).compactMap { row in
            guard let index = rows.boundedInteger(row, 0).map({ Int($0) }), let user = rows.name(row, 1),
                let variables = rows.bytes(row, 2), indices.contains(index),
                seen.insert(Heard(index: index, user: user)).inserted
            else { return nil }
            // Any value that is not clearly "no" counts as a wish not to be disturbed.
            let isMuted = rows.text(row, 3).map { !["false", "f", "0", "no", "off"].contains($0) } ?? false
            return Candidate(
                index: index, user: user, variables: Array(variables), isMuted: isMuted,
                badge: rows.boundedInteger(row, 4).map { Int($0) }, hasDevice: rows.flag(row, 5),
                isRegistered: rows.width > 6 ? rows.flag(row, 6) : true)
        }
    }

    private static func delayed(_ error: PostgresError) -> String {
        "alerts.audience did not answer, so some alerts come later; an index for what it reads may help (\(error.message))."
    }

    private static func broken(_ error: PostgresError) -> String {
        "alerts.audience fails, so nobody is alerted; correct it, or what it rests on (\(error.message))."
    }

    /// Leaves out the error's message, which may quote the row.
    private static func refused(_ asked: AudienceQuestion.Asked, _ error: PostgresError) -> String {
        "alerts.audience fails for some rows of \(asked.change.table.schema).\(asked.change.table.name), of which nobody is "
            + "alerted (SQLSTATE \(error.sqlState ?? "unknown")); run it with such a row to see why."
    }
}

extension PostgresError {
    /// Whether the same statement may succeed a little later: locks, deadlocks, deadlines, a lack of resources (Postgres, appendix A).
    /// Writing in a read-only transaction is not among them: the statement may not write.
    var isOfTheMoment: Bool {
        guard let sqlState else { return true }
        return ["40", "53", "55", "57", "58"].contains { sqlState.hasPrefix($0) }
    }

    fileprivate var isOutOfTime: Bool { sqlState == "57014" }
}

/// Changes in the form of the audience statement's parameter.
struct AudienceQuestion {
    /// The maximum number of changes in one statement.
    static let mostChanges = 500
    /// The maximum size of the records in a statement with more than one.
    private static let mostBytes = 1_000_000

    struct Asked {
        /// The change's index in the caller's question.
        let index: Int
        let change: RowChange
        let record: [UInt8]
    }

    /// Returns the rows to ask about. A deleted row has no audience.
    static func asked(_ changes: [RowChange]) -> [Asked] {
        changes.enumerated().compactMap { index, change in
            guard !change.isNotification else { return nil }
            return change.record.map { Asked(index: index, change: change, record: $0) }
        }
    }

    /// Splits the rows to ask about into pieces of one statement each.
    static func pieces(of asked: [Asked]) -> [ArraySlice<Asked>] {
        var pieces: [ArraySlice<Asked>] = []
        var start = 0
        var bytes = 0
        for (place, one) in asked.enumerated() {
            if place > start, place - start >= mostChanges || bytes + one.record.count > mostBytes {
                pieces.append(asked[start..<place])
                start = place
                bytes = 0
            }
            bytes += one.record.count
        }
        if start < asked.count { pieces.append(asked[start...]) }
        return pieces
    }

    /// `[{"row":0,"schema":"public","table":"messages","record":{…}}]`
    static func json(_ asked: ArraySlice<Asked>) -> String {
        var out = Array("[".utf8)
        for one in asked {
            if out.count > 1 { out.append(UInt8(ascii: ",")) }
            out += "{\"row\":\(one.index),\"schema\":\"".utf8
            out += RecordKeys.encodeKey(one.change.table.schema)
            out += "\",\"table\":\"".utf8
            out += RecordKeys.encodeKey(one.change.table.name)
            out += "\",\"record\":".utf8
            out += one.record
            out.append(UInt8(ascii: "}"))
        }
        return String(decoding: out, as: UTF8.self) + "]"
    }
}
