import Hub
import Matching
import Postgres

/// One long read for all members that lacked too much, on a session of its own: Postgres sorts and sends while the feed
/// continues, and the feed takes the rows that have arrived between its windows.
///
/// The amount to read is as large as the past, so it is read once, and sorted by Postgres; slices with a limit would sort
/// the rest again each time.
final class RecoveryScan {
    enum State {
        /// More rows can be taken right now.
        case ready
        /// Waiting for Postgres or for a member's lagging socket; check again at this time at the latest.
        case waiting(until: ContinuousClock.Instant)
        case ended
    }

    static let batchRows = 256
    private static let batchBytes = 262_144
    /// Time that members which keep up wait for those that do not.
    private static let patience = Duration.seconds(1)
    /// Time for which all of them may lag: the read holds a snapshot, which keeps vacuum from its work.
    private static let longestPause = Duration.seconds(10)

    let upper: Snapshot
    private let connection: PostgresConnection
    private let limit: Duration
    private var served: [ChangeGroupID: RecoveryMember]
    private var rows: [RecoveredRow] = []
    private var bytes = 0
    private var lastID: Int64 = 0
    private var isRead = false
    private var pausedAt: ContinuousClock.Instant?
    private var heardAt = ContinuousClock.now

    /// - Parameters:
    ///   - prefilter: the rows that can concern the members; nil if all can.
    ///   - limit: how long Postgres may take for the next row.
    init(
        _ members: [RecoveryMember], upTo upper: Snapshot, of prefilter: RowPrefilter?, _ form: OutboxForm,
        on connection: PostgresConnection, within limit: Duration
    ) throws {
        self.upper = upper
        self.connection = connection
        self.limit = limit
        served = Dictionary(members.map { ($0.key, $0) }, uniquingKeysWith: { $1 })
        try connection.beginRows(
            RecoveryStatement.text(
                starts: members.compactMap(\.start), upTo: upper, of: prefilter, form,
                .ordered))
    }

    var members: [RecoveryMember] { Array(served.values) }

    /// The session of this scan, if the next one can use it.
    var session: PostgresConnection? { isRead && !connection.isBroken ? connection : nil }

    /// Nil while rows that Postgres sends could not be taken.
    var descriptor: Int32? { pausedAt == nil ? connection.descriptor : nil }

    /// Sends the rows that have arrived, for no longer than a window may wait.
    ///
    /// - Throws: `ScanError`: `judging` if policies cannot be evaluated, `reading` if the read itself fails.
    func serveScheduler(_ scheduler: RecoveryScheduler, _ catalog: Catalog, for time: Duration) throws(ScanError)
        -> State
    {
        let end = ContinuousClock.now + time
        var reader = RecoveredRowReader(catalog: catalog)
        while true {
            served = served.filter { !$0.value.isGone }
            if served.isEmpty { return .ended }
            if let until = checkLag(scheduler) { return .waiting(until: until) }
            if ContinuousClock.now >= end { return .ready }
            let isShort = try readRows(&reader)
            try sendRows(scheduler)
            if isRead {
                scheduler.scanFinished(members, upTo: upper)
                return .ended
            }
            if isShort { return .waiting(until: heardAt + limit) }
        }
    }

    /// - Returns: the time until which to wait for lagging sockets, nil if there are none.
    private func checkLag(_ scheduler: RecoveryScheduler) -> ContinuousClock.Instant? {
        let behind = served.values.filter(\.isBehind)
        guard !behind.isEmpty else {
            if pausedAt != nil { heardAt = .now }
            pausedAt = nil
            return nil
        }
        let since = pausedAt ?? .now
        pausedAt = since
        let until = since + (behind.count == served.count ? Self.longestPause : Self.patience)
        guard ContinuousClock.now >= until else { return until }
        for member in behind {
            member.breakOff(at: lastID, of: upper)
            served[member.key] = nil
        }
        scheduler.putBack(behind)
        pausedAt = nil
        heardAt = .now
        return served.isEmpty ? .now : nil
    }

    /// - Returns: true if Postgres has no more rows at the moment.
    private func readRows(_ reader: inout RecoveredRowReader) throws(ScanError) -> Bool {
        do {
            while rows.count < Self.batchRows, bytes < Self.batchBytes {
                switch try connection.takeRow() {
                case .row(let result):
                    let row = try reader.readRow(result)
                    rows.append(row)
                    bytes += row.bytes
                    heardAt = .now
                case .pending:
                    guard ContinuousClock.now < heardAt + limit else {
                        throw PostgresError(.timeout, "Postgres did not answer in time.")
                    }
                    return true
                case .end:
                    isRead = true
                    return false
                }
            }
            return false
        } catch {
            throw .reading(error)
        }
    }

    private func sendRows(_ scheduler: RecoveryScheduler) throws(ScanError) {
        guard let last = rows.last else { return }
        do { try scheduler.sendRows(rows[...], to: served, of: upper) } catch { throw .judging(error) }
        lastID = last.id
        rows.removeAll(keepingCapacity: true)
        bytes = 0
    }
}

enum ScanError: Error {
    /// The scan is over; the feed continues.
    case reading(any Error)
    /// The feed cannot continue either.
    case judging(any Error)
}
