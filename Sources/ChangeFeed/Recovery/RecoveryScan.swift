import Hub
import Matching
import Postgres

/// One long reading for all who lacked too much, on a session of its own: Postgres sorts and sends while the feed goes on,
/// and the feed takes what has arrived between its windows.
///
/// It is the size of the past that is read, so it is read once, and sorted by Postgres; slices with a limit would sort
/// what is left each time anew.
final class RecoveryScan {
    enum State {
        /// There is more to take right now.
        case ready
        /// Postgres sends, or somebody's socket lags; look again then at the latest.
        case waiting(until: ContinuousClock.Instant)
        case ended
    }

    static let batchRows = 256
    private static let batchBytes = 262_144
    /// How long those who keep up wait for those who do not.
    private static let patience = Duration.seconds(1)
    /// How long all of them may lag: the reading holds a snapshot, which keeps vacuum from its work.
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
    ///   - prefilter: which rows can concern them; nil if all can.
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

    /// What it was read on, if that is of use for the next.
    var session: PostgresConnection? { isRead && !connection.isBroken ? connection : nil }

    /// Nil while nothing that Postgres sends could be taken.
    var descriptor: Int32? { pausedAt == nil ? connection.descriptor : nil }

    /// Hands on what there is, for no longer than a window may wait.
    ///
    /// - Throws: `PostgresError` with kind `connection` or `timeout` where policies cannot be asked; what is wrong with the
    ///   reading itself is the third kind.
    func serve(_ scheduler: RecoveryScheduler, _ catalog: Catalog, for time: Duration) throws(ScanError) -> State {
        let end = ContinuousClock.now + time
        var reader = RecoveredRowReader(catalog: catalog)
        while true {
            served = served.filter { !$0.value.isGone }
            if served.isEmpty { return .ended }
            if let until = pause(scheduler) { return .waiting(until: until) }
            if ContinuousClock.now >= end { return .ready }
            let isShort = try read(&reader)
            try tell(scheduler)
            if isRead {
                scheduler.scanned(members, upTo: upper)
                return .ended
            }
            if isShort { return .waiting(until: heardAt + limit) }
        }
    }

    /// - Returns: until when to wait for sockets that lag, nil if for none.
    private func pause(_ scheduler: RecoveryScheduler) -> ContinuousClock.Instant? {
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
            member.brokeOff(at: lastID, of: upper)
            served[member.key] = nil
        }
        scheduler.putBack(behind)
        pausedAt = nil
        heardAt = .now
        return served.isEmpty ? .now : nil
    }

    /// - Returns: whether Postgres has no more to give at the moment.
    private func read(_ reader: inout RecoveredRowReader) throws(ScanError) -> Bool {
        do {
            while rows.count < Self.batchRows, bytes < Self.batchBytes {
                switch try connection.takeRow() {
                case .row(let result):
                    let row = try reader.row(result)
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

    private func tell(_ scheduler: RecoveryScheduler) throws(ScanError) {
        guard let last = rows.last else { return }
        do { try scheduler.tell(rows[...], to: served, of: upper) } catch { throw .judging(error) }
        lastID = last.id
        rows.removeAll(keepingCapacity: true)
        bytes = 0
    }
}

enum ScanError: Error {
    /// The scan is over; the feed goes on.
    case reading(any Error)
    /// The feed cannot go on either.
    case judging(any Error)
}
