import Hub
import Logging
import Postgres
import Wire
import Workers

/// Writes users' transitions to the application's own table, by the configured statement.
struct UserStatusWriter: ~Copyable {
    private let node: String
    private let users: UserPresence
    private let statement: String
    private var retry: RetrySchedule
    private var trials: UserTrials
    /// The last time that the log named a user, by SQLSTATE: there may be thousands of them.
    private var refusals: [String: ContinuousClock.Instant] = [:]

    /// The most users per transaction.
    private static let batch = 1000
    /// The time per pass for finding the refused users of a batch; the others wait for the next pass.
    private static let patience = Duration.seconds(5)
    private static let silence = Duration.seconds(60)

    init(node: String, users: UserPresence, statement: String, firstRetry: Duration) {
        self.node = node
        self.users = users
        self.statement = statement
        retry = RetrySchedule(first: firstRetry)
        trials = UserTrials(firstPause: firstRetry * 5)
    }

    /// Prepares for a new connection.
    mutating func startSession() { retry.retryNow() }

    /// Writes what is waiting, one batch at a time.
    ///
    /// - Parameter isLast: writes everything, regardless of recent failures.
    /// - Returns: true if everything that was waiting at the start is done with.
    /// - Throws: `PostgresError` if the connection has to be abandoned.
    mutating func writeWaiting(
        on connection: PostgresConnection, isLast: Bool, _ statistics: inout PresenceStatistics,
        _ warnings: inout RateLimitedLog
    ) throws -> Bool {
        guard retry.isDue(at: .now) || isLast else { return false }
        let transaction = UserStatusTransaction(node: node, statement: statement, connection: connection)
        // Users that hold up others, and are not due yet.
        var resting: [UserTransition] = []
        defer { users.putBehind(resting) }
        while true {
            let taken = users.takeTransitions(upTo: Self.batch)
            // No text of Postgres can contain a NUL, so no such user is in any table.
            let batch = taken.filter { !$0.user.utf8.contains(0) }
            statistics.refusedTransitions += taken.count - batch.count
            guard try batch.isEmpty || writeBatch(batch, transaction, isLast: isLast, &resting, &statistics, &warnings)
            else { return false }
            retry.attemptSucceeded()
            if taken.count < Self.batch { return resting.isEmpty }
            if !isLast { return false }
        }
    }

    /// Writes a batch: in halves if it is refused, and one by one if it is held up. A user that the statement cannot
    /// take, or not now, must not block the others.
    ///
    /// - Parameter resting: receives the users that hold up others, or recently did.
    /// - Returns: false if some of the others have to wait.
    private mutating func writeBatch(
        _ batch: [UserTransition], _ transaction: UserStatusTransaction, isLast: Bool,
        _ resting: inout [UserTransition], _ statistics: inout PresenceStatistics, _ warnings: inout RateLimitedLog
    ) throws -> Bool {
        let end = ContinuousClock.now + Self.patience
        let (free, suspects) = sortSuspects(batch, isLast: isLast, &resting)
        var parts = Self.splitSingly(suspects[...])
        parts += trials.isApart ? Self.splitSingly(free[...]) : free.isEmpty ? [] : [free[...]]
        var isRehearsed = false
        do {
            while let part = parts.last {
                guard part.count == batch.count || ContinuousClock.now < end else {
                    giveBack(parts)
                    return false
                }
                do {
                    try transaction.writeTransitions(part)
                    statistics.transactions += 1
                    statistics.transitions += part.count
                    if part.count == 1 { trials.noteWritten(part.map(\.user)) }
                    parts.removeLast()
                } catch let fault as UserStatusFault {
                    if fault.isPassing, !trials.isApart, !isSuspect(part) {
                        // A single failure may be a passing state of the server.
                        trials.noteHoldUp()
                        guard trials.isApart else { throw fault }
                    }
                    if !isRehearsed { try transaction.rehearseStatement() }
                    isRehearsed = true
                    parts.removeLast()
                    if fault.isPassing {
                        guard part.count == 1 else {
                            parts += Self.splitSingly(part)
                            continue
                        }
                        statistics.failures += 1
                        setAside(part, fault.error, &resting, &warnings)
                    } else if part.count > 1 {
                        let middle = part.startIndex + part.count / 2
                        parts += [part[middle...], part[..<middle]]
                    } else if let user = part.first?.user {
                        statistics.refusedTransitions += 1
                        logRefusal(user, fault, &warnings)
                    }
                }
            }
            trials.noteSuccess()
            return true
        } catch let fault as UserStatusFault {
            giveBack(parts)
            statistics.failures += 1
            retry.attemptFailed(at: .now)
            warnings.logWarning(Self.warningText(fault))
            return false
        } catch {
            // The session is lost, possibly because of this part.
            trials.noteHoldUp()
            if let part = parts.last, part.count == 1, let user = part.first?.user, trials.noteSessionLoss(user),
                let error = error as? PostgresError
            {
                parts.removeLast()
                setAside(part, error, &resting, &warnings)
            }
            giveBack(parts)
            throw error
        }
    }

    private func isSuspect(_ part: ArraySlice<UserTransition>) -> Bool {
        part.count == 1 && part.allSatisfy { trials.isDue($0.user, at: .now) != nil }
    }

    /// Separates the users that have held up others: each of them is written alone and last, once due, or if this is
    /// the last write.
    private func sortSuspects(
        _ batch: [UserTransition], isLast: Bool, _ resting: inout [UserTransition]
    ) -> (free: [UserTransition], suspects: [UserTransition]) {
        guard !trials.isEmpty else { return (batch, []) }
        let now = ContinuousClock.now
        var (free, suspects): ([UserTransition], [UserTransition]) = ([], [])
        for transition in batch {
            switch trials.isDue(transition.user, at: now) {
            case nil: free.append(transition)
            case true?: suspects.append(transition)
            case false? where isLast: suspects.append(transition)
            case false?: resting.append(transition)
            }
        }
        return (free, suspects)
    }

    private mutating func setAside(
        _ part: ArraySlice<UserTransition>, _ error: PostgresError, _ resting: inout [UserTransition],
        _ warnings: inout RateLimitedLog
    ) {
        resting += part
        guard let user = part.first?.user else { return }
        trials.setAside(user, at: .now)
        warnings.logWarning(
            "The status of the user \(Self.quotedName(user)) is not written for now, and maybe that of others; the hub keeps trying, as a "
                + "lock, the server or the end of its session holds up users.statement for them alone: \(error.message)",
            about: "users aside")
    }

    /// Single elements, in the reverse order, as they are taken from the end.
    private static func splitSingly(_ part: ArraySlice<UserTransition>) -> [ArraySlice<UserTransition>] {
        part.indices.reversed().map { part[$0...$0] }
    }

    private func giveBack(_ parts: [ArraySlice<UserTransition>]) {
        users.giveBack(parts.reversed().flatMap { $0 })
    }

    private mutating func logRefusal(_ user: Name, _ fault: UserStatusFault, _ warnings: inout RateLimitedLog) {
        let state = fault.error.sqlState ?? ""
        if let before = refusals[state], before + Self.silence > .now { return }
        refusals[state] = .now
        let refuser = fault.place == .statement ? "users.statement fails for" : "roost.online_user does not take"
        warnings.logWarning(
            "\(refuser) the user \(Self.quotedName(user)), whose status is therefore not written, and maybe others "
                + "(SQLSTATE \(state)): \(fault.error.message)")
    }

    private static func quotedName(_ user: Name) -> String { String(reflecting: String(user.text.prefix(100))) }

    private static func warningText(_ fault: UserStatusFault) -> String {
        let reason =
            switch (fault.place, fault.isPassing) {
            case (_, true): "a lock or the server holds it up"
            case (.own, false): "roost.online_user cannot be written; `roost doctor` tells what the hub's role needs"
            case (.statement, false): "users.statement fails; correct it, or what it rests on"
            }
        return "Who is online is not written for now, and the hub keeps trying, as \(reason): \(fault.error.message)"
    }
}
