import Hub
import Logging
import Postgres
import Wire
import Workers

/// Passes receipts to the application's statement in batches: a receipt that it cannot take, or not now, must not block
/// the others.
///
/// A refused batch is halved, down to the single receipt, which is dropped. After two hold-ups in a row, by a lock or
/// the end of the session, receipts are written one by one, and one that holds up the others alone is set aside
/// (`UserTrials`).
struct ReceiptBatches: ~Copyable {
    private let statement: String
    private let log: ReceiptLog
    private var retry: RetrySchedule
    private var trials: UserTrials
    private var warnings: RateLimitedLog
    var statistics = ReceiptStatistics()

    /// The most receipts per statement.
    private static let batch = 2000
    /// The time per pass for finding the refused receipts of a batch; the others wait for the next pass.
    private static let patience = Duration.seconds(5)

    init(_ setup: ReceiptSetup) {
        statement = setup.statement
        log = setup.log
        retry = RetrySchedule(first: setup.timing.firstRetry)
        trials = UserTrials(firstPause: setup.timing.firstRetry * 5)
        warnings = RateLimitedLog(logger: setup.logger)
    }

    /// Prepares for a new connection.
    mutating func startSession() { retry.retryNow() }

    /// Writes everything that is waiting.
    ///
    /// - Parameter isLast: writes regardless of recent failures.
    /// - Throws: `PostgresError` if the connection has to be abandoned.
    mutating func writeWaiting(on connection: PostgresConnection, isLast: Bool) throws {
        guard retry.isDue(at: .now) || isLast else { return }
        // No more than is waiting now: later and resting receipts are for the next pass.
        var left = log.counts.waiting
        while left > 0 {
            let batch = log.takeReceipts(upTo: min(Self.batch, left))
            guard !batch.isEmpty else { return }
            left -= batch.count
            guard try writeBatch(batch, on: connection) else { return }
            retry.attemptSucceeded()
        }
    }

    /// - Returns: false if the statement does not work, or if some receipts have to wait.
    private mutating func writeBatch(_ batch: [Receipt], on connection: PostgresConnection) throws -> Bool {
        let end = ContinuousClock.now + Self.patience
        var resting: [Receipt] = []
        var parts = initialParts(of: batch, &resting)
        var isRehearsed = false
        while let part = parts.last {
            guard part.count == batch.count || ContinuousClock.now < end else { break }
            do {
                try writeReceipts(part, on: connection)
                statistics.batches += 1
                statistics.written += part.count
                if part.count == 1 { trials.noteWritten(part.map(\.trialName)) }
                parts.removeLast()
            } catch let error as PostgresError where !connection.isBroken {
                let mayPass = Self.mayPass(error)
                if mayPass, !trials.isApart, part.count > 1 {
                    // A single failure may be a passing state of the server.
                    trials.noteHoldUp()
                    guard trials.isApart else { return giveUp(parts, resting, error) }
                }
                if !isRehearsed, let fault = try rehearseStatement(parts, resting, on: connection) {
                    return giveUp(parts, resting, fault)
                }
                isRehearsed = true
                parts.removeLast()
                if part.count > 1 {
                    let middle = part.startIndex + part.count / 2
                    parts +=
                        mayPass ? part.indices.reversed().map { part[$0...$0] } : [part[middle...], part[..<middle]]
                } else if mayPass {
                    setAside(part, error, &resting)
                } else {
                    statistics.refused += 1
                    warnings.logWarning(
                        "receipts.statement fails for some receipts, which are therefore not written (SQLSTATE "
                            + "\(error.sqlState ?? "unknown")): \(error.message)",
                        about: "refused \(error.sqlState ?? "")")
                }
            } catch {
                // The session is lost, possibly because of this part.
                trials.noteHoldUp()
                if part.count == 1, let name = part.first?.trialName, trials.noteSessionLoss(name),
                    let error = error as? PostgresError
                {
                    parts.removeLast()
                    setAside(part, error, &resting)
                }
                log.finishBatch(inFront: Self.joinParts(parts), behind: resting)
                throw error
            }
        }
        log.finishBatch(inFront: Self.joinParts(parts), behind: resting)
        guard parts.isEmpty else { return false }
        trials.noteSuccess()
        return true
    }

    /// The error of the statement without receipts; nil if it works.
    private func rehearseStatement(
        _ parts: [ArraySlice<Receipt>], _ resting: [Receipt], on connection: PostgresConnection
    ) throws -> PostgresError? {
        do {
            try writeReceipts([], on: connection)
            return nil
        } catch let error as PostgresError where !connection.isBroken {
            return error
        } catch {
            log.finishBatch(inFront: Self.joinParts(parts), behind: resting)
            throw error
        }
    }

    /// All receipts in one part, or singly after hold-ups; those that hold up others are alone and last, once due.
    private func initialParts(of batch: [Receipt], _ resting: inout [Receipt]) -> [ArraySlice<Receipt>] {
        var (free, suspects): ([Receipt], [Receipt]) = (batch, [])
        if !trials.isEmpty {
            let now = ContinuousClock.now
            free = []
            for receipt in batch {
                switch trials.isDue(receipt.trialName, at: now) {
                case nil: free.append(receipt)
                case true?: suspects.append(receipt)
                case false?: resting.append(receipt)
                }
            }
        }
        let apart = suspects.indices.reversed().map { suspects[$0...$0] }
        if trials.isApart { return apart + free.indices.reversed().map { free[$0...$0] } }
        return apart + (free.isEmpty ? [] : [free[...]])
    }

    private static func joinParts(_ parts: [ArraySlice<Receipt>]) -> [Receipt] { parts.reversed().flatMap { $0 } }

    private mutating func giveUp(_ parts: [ArraySlice<Receipt>], _ resting: [Receipt], _ error: PostgresError) -> Bool {
        log.finishBatch(inFront: Self.joinParts(parts), behind: resting)
        statistics.failures += 1
        retry.attemptFailed(at: .now)
        let reason =
            Self.mayPass(error)
            ? "a lock or the server holds it up" : "receipts.statement fails; correct it, or what it rests on"
        warnings.logWarning(
            "Receipts are not written for now, and the hub keeps trying, as \(reason): \(error.message)")
        return false
    }

    private mutating func setAside(_ part: ArraySlice<Receipt>, _ error: PostgresError, _ resting: inout [Receipt]) {
        statistics.failures += 1
        resting += part
        for receipt in part { trials.setAside(receipt.trialName, at: .now) }
        warnings.logWarning(
            "Some receipts are not written for now; the hub keeps trying, as a lock, the server or the end of its session holds "
                + "up receipts.statement for them alone: \(error.message)",
            about: "receipts aside")
    }

    /// Whether a retry may succeed (Postgres, appendix A).
    private static func mayPass(_ error: PostgresError) -> Bool {
        guard let state = error.sqlState else { return true }
        return ["25", "40", "53", "55", "57", "58"].contains { state.hasPrefix($0) }
    }

    /// A user and a row occur only once per statement, which may be an `on conflict do update`.
    private func writeReceipts(_ part: ArraySlice<Receipt>, on connection: PostgresConnection) throws {
        var places: [ReceiptKey: Int] = [:]
        var receipts: [(receipt: Receipt, isShown: Bool)] = []
        // No text of Postgres can contain a NUL, so no such user is in any table.
        for receipt in part where !receipt.user.utf8.contains(0) {
            let key = ReceiptKey(user: receipt.user, table: receipt.row.table, key: receipt.row.key)
            if let place = places[key] {
                receipts[place].isShown = receipts[place].isShown || receipt.isShown
            } else {
                places[key] = receipts.count
                receipts.append((receipt, receipt.isShown))
            }
        }
        guard part.isEmpty || !receipts.isEmpty else { return }
        var columns = [TextArray](repeating: TextArray(), count: 5)
        for (receipt, isShown) in receipts {
            columns[0].append(receipt.user.utf8)
            columns[1].append(receipt.row.table.utf8)
            columns[2].append(receipt.row.key)
            columns[3].append(CivilTime(millisecondsSince1970: Int(receipt.at)).timestamp.utf8)
            columns[4].append((isShown ? "shown" : "delivered").utf8)
        }
        _ = try connection.query(statement, columns.map(\.literal))
    }
}

private struct ReceiptKey: Hashable {
    let user: Name
    let table: Name
    let key: [UInt8]
}

extension Receipt {
    /// The name under which it is tracked if it holds up others.
    fileprivate var trialName: Name { Name("\(user) \(row.table) \(String(decoding: row.key, as: UTF8.self))") }
}
