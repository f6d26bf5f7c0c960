import Hub
import Logging
import Postgres
import Wire
import Workers

/// Writes who came online and who went to the application's own table, by the configured statement.
struct UserStatusWriter: ~Copyable {
    private let node: String
    private let users: UserPresence
    private let statement: String
    private var retry: RetrySchedule
    /// When the log last named a user, by SQLSTATE: there may be thousands of them.
    private var refusals: [String: ContinuousClock.Instant] = [:]

    /// Told of in one transaction.
    private static let batch = 1000
    /// For finding out in one pass which users of a batch are refused; the others wait for the next.
    private static let patience = Duration.seconds(5)
    private static let silence = Duration.seconds(60)

    init(node: String, users: UserPresence, statement: String, firstRetry: Duration) {
        self.node = node
        self.users = users
        self.statement = statement
        retry = RetrySchedule(first: firstRetry)
    }

    /// The connection is another.
    mutating func begin() { retry.retryNow() }

    /// Tells of what waits, one batch at a time.
    ///
    /// - Parameter isLast: of all of it, and whatever failed a moment ago.
    /// - Returns: whether all that waited at the start is settled.
    /// - Throws: `PostgresError` where the connection is to be given up.
    mutating func write(
        on connection: PostgresConnection, isLast: Bool, _ statistics: inout PresenceStatistics,
        _ warnings: inout RateLimitedLog
    ) throws -> Bool {
        guard retry.isDue(at: .now) || isLast else { return false }
        let transaction = UserStatusTransaction(node: node, statement: statement, connection: connection)
        while true {
            let taken = users.take(upTo: Self.batch)
            // No text of Postgres' holds a NUL, so no such user is in any table.
            let batch = taken.filter { !$0.user.utf8.contains(0) }
            statistics.refusedTransitions += taken.count - batch.count
            guard try batch.isEmpty || settle(batch, transaction, &statistics, &warnings) else { return false }
            retry.succeeded()
            if taken.count < Self.batch { return true }
            if !isLast { return false }
        }
    }

    /// Tells of a batch, by halves where it is refused: one user that the statement cannot take must not keep the others.
    ///
    /// - Returns: false where some of it waits for another time.
    private mutating func settle(
        _ batch: [UserTransition], _ transaction: UserStatusTransaction, _ statistics: inout PresenceStatistics,
        _ warnings: inout RateLimitedLog
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
                    try transaction.write(part)
                    statistics.transactions += 1
                    statistics.transitions += part.count
                    parts.removeLast()
                } catch let fault as UserStatusFault {
                    guard !fault.isPassing else { throw fault }
                    if !isRehearsed { try transaction.rehearse() }
                    isRehearsed = true
                    parts.removeLast()
                    if part.count > 1 {
                        let middle = part.startIndex + part.count / 2
                        parts += [part[middle...], part[..<middle]]
                    } else if let user = part.first?.user {
                        statistics.refusedTransitions += 1
                        refuse(user, fault, &warnings)
                    }
                }
            }
            return true
        } catch let fault as UserStatusFault {
            giveBack(parts)
            statistics.failures += 1
            retry.failed(at: .now)
            warnings.note(Self.sentence(fault))
            return false
        } catch {
            giveBack(parts)
            throw error
        }
    }

    private func giveBack(_ parts: [ArraySlice<UserTransition>]) {
        users.giveBack(parts.reversed().flatMap { $0 })
    }

    private mutating func refuse(_ user: Name, _ fault: UserStatusFault, _ warnings: inout RateLimitedLog) {
        let state = fault.error.sqlState ?? ""
        if let before = refusals[state], before + Self.silence > .now { return }
        refusals[state] = .now
        let refuser = fault.place == .statement ? "users.statement fails for" : "roost.online_user does not take"
        warnings.note(
            "\(refuser) the user \(String(reflecting: String(user.text.prefix(100)))), whose status is therefore not written, and "
                + "maybe others (SQLSTATE \(state)): \(fault.error.message)")
    }

    private static func sentence(_ fault: UserStatusFault) -> String {
        let reason =
            switch (fault.place, fault.isPassing) {
            case (_, true): "a lock or the server holds it up"
            case (.own, false): "roost.online_user cannot be written; `roost doctor` tells what the hub's role needs"
            case (.statement, false): "users.statement fails; correct it, or what it rests on"
            }
        return "Who is online is not written for now, and the hub keeps trying, as \(reason): \(fault.error.message)"
    }
}
