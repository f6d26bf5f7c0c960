import Hub
import Logging
import Postgres

/// Writes who came online and who went to the application's own table, by the configured statement.
struct UserStatusWriter: ~Copyable {
    private let node: String
    private let users: UserPresence
    private let statement: String
    private let firstRetry: Duration
    private var backoff: Backoff
    private var retryAt: ContinuousClock.Instant?
    /// When a user was last complained of, by SQLSTATE: there may be thousands of them.
    private var refusals: [String: ContinuousClock.Instant] = [:]

    /// Told of in one transaction.
    private static let batch = 1000
    /// For finding out in one beat which users of a batch are refused; the others wait for the next.
    private static let patience = Duration.seconds(5)
    private static let silence = Duration.seconds(60)

    init(node: String, users: UserPresence, statement: String, firstRetry: Duration) {
        self.node = node
        self.users = users
        self.statement = statement
        self.firstRetry = firstRetry
        backoff = Backoff(first: firstRetry)
    }

    /// The connection is another.
    mutating func begin() { retryAt = nil }

    /// Tells of what waits, one batch at a time.
    ///
    /// - Parameter isLast: of all of it, and whatever failed a moment ago.
    /// - Returns: whether all that waited at the start is settled.
    /// - Throws: `PostgresError` where the connection is to be given up.
    mutating func write(
        on connection: PostgresConnection, isLast: Bool, _ statistics: inout PresenceStatistics,
        _ complaints: inout RateLimitedLog
    ) throws -> Bool {
        if let retryAt, retryAt > .now, !isLast { return false }
        let telling = UserTelling(node: node, statement: statement, connection: connection)
        while true {
            let taken = users.take(upTo: Self.batch)
            // No text of Postgres' holds a NUL, so no such user is in any table.
            let batch = taken.filter { !$0.user.utf8.contains(0) }
            statistics.refusedTransitions += taken.count - batch.count
            guard try batch.isEmpty || settle(batch, telling, &statistics, &complaints) else { return false }
            backoff = Backoff(first: firstRetry)
            retryAt = nil
            if taken.count < Self.batch { return true }
            if !isLast { return false }
        }
    }

    /// Tells of a batch, by halves where it is refused: one user that the statement cannot take must not keep the others.
    ///
    /// - Returns: false where some of it waits for another time.
    private mutating func settle(
        _ batch: [UserTransition], _ telling: UserTelling, _ statistics: inout PresenceStatistics,
        _ complaints: inout RateLimitedLog
    ) throws -> Bool {
        let end = ContinuousClock.now + Self.patience
        var parts = [batch[...]]
        var isRehearsed = false
        do {
            while let part = parts.last {
                guard part.count == batch.count || ContinuousClock.now < end else {
                    giveBack(parts)
                    return false
                }
                do {
                    try telling.tell(part)
                    statistics.transactions += 1
                    statistics.transitions += part.count
                    parts.removeLast()
                } catch let fault as UserFault {
                    guard !fault.isPassing else { throw fault }
                    if !isRehearsed { try telling.rehearse() }
                    isRehearsed = true
                    parts.removeLast()
                    if part.count > 1 {
                        let middle = part.startIndex + part.count / 2
                        parts += [part[middle...], part[..<middle]]
                    } else if let user = part.first?.user {
                        statistics.refusedTransitions += 1
                        refuse(user, fault, &complaints)
                    }
                }
            }
            return true
        } catch let fault as UserFault {
            giveBack(parts)
            statistics.failures += 1
            retryAt = .now + backoff.failed(at: .now, random: .random(in: 0..<1))
            complaints.note(Self.sentence(fault))
            return false
        } catch {
            giveBack(parts)
            throw error
        }
    }

    private func giveBack(_ parts: [ArraySlice<UserTransition>]) {
        users.giveBack(parts.reversed().flatMap { $0 })
    }

    private mutating func refuse(_ user: String, _ fault: UserFault, _ complaints: inout RateLimitedLog) {
        let state = fault.error.sqlState ?? ""
        if let before = refusals[state], before + Self.silence > .now { return }
        refusals[state] = .now
        let refuser = fault.place == .statement ? "users.statement fails for" : "roost.online_user does not take"
        complaints.note(
            "\(refuser) the user \(String(reflecting: String(user.prefix(100)))), whose status is therefore not written, and "
                + "maybe others (SQLSTATE \(state)): \(fault.error.message)")
    }

    private static func sentence(_ fault: UserFault) -> String {
        let reason =
            switch (fault.place, fault.isPassing) {
            case (_, true): "a lock or the server holds it up"
            case (.own, false): "roost.online_user cannot be written; `roost doctor` tells what the hub's role needs"
            case (.statement, false): "users.statement fails; correct it, or what it rests on"
            }
        return "Who is online is not written for now, and tried again, as \(reason): \(fault.error.message)"
    }
}
