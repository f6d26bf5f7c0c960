import Postgres

/// The stream of a slot: its messages decoded into a batch, and what is stored acknowledged. On the capture's thread.
final class CaptureStream {
    let connection: PostgresConnection
    let batch = CaptureBatch()
    private var decoder: CaptureDecoder
    /// All that was committed before was sent.
    private var sentUpTo = LSN(0)
    private var acknowledged = LSN(0)
    private var acknowledgedAt = ContinuousClock.now
    private var wantsReply = false
    /// Since when the walsender owes an answer.
    private var askedAt: ContinuousClock.Instant?
    /// How many rows a batch has at most (`BatchTrials`); nil where that is as usual.
    var mostRows: Int?

    /// Between acknowledgements of what moves, and of what does not: a walsender that hears nothing for 8 s ends the session.
    private static let (often, seldom) = (Duration.milliseconds(100), Duration.seconds(2))
    /// A walsender that does not answer for so long hangs, or is cut off.
    private static let patience = Duration.seconds(6)
    private static let usualRows = 4_000
    private static let mostBytes = 4_194_304

    /// Begins to read.
    ///
    /// - Throws: `PostgresError`; of SQLSTATE 55006 where somebody else reads the slot.
    init(of slot: String, after position: CapturePosition, on connection: PostgresConnection) throws {
        self.connection = connection
        decoder = CaptureDecoder(after: position)
        try connection.beginStream(
            "START_REPLICATION SLOT \"\(slot)\" LOGICAL \(position.lsn) (proto_version '1', publication_names '\"roost\"')"
        )
    }

    /// What is stored, once `batch` is.
    var position: CapturePosition { decoder.position }

    /// The place in the WAL at which the transaction that is being read was committed.
    var commit: LSN? { decoder.commit }

    /// Whether the batch may be stored: it ends with a transaction, or holds as much as it may.
    var isAtBoundary: Bool { isFull || !decoder.isInTransaction }

    var isFull: Bool { batch.rows >= mostRows ?? Self.usualRows || batch.bytes >= Self.mostBytes }

    /// Reads what has arrived, up to a full batch or until `enough` says so at the end of a transaction.
    ///
    /// - Returns: whether there may be more at once.
    /// - Throws: `PostgresError`, also where the walsender does not answer; `MalformedStream`.
    func read(until enough: () -> Bool) throws -> Bool {
        while !isFull {
            if !decoder.isInTransaction, enough() { return true }
            let arrival = try connection.takeStreamMessage { bytes in
                askedAt = nil
                switch try StreamMessage(bytes) {
                case .data(let message, _): try decoder.take(PgoutputMessage(message), into: batch)
                case .keepalive(let end, let wantsReply):
                    sentUpTo = max(sentUpTo, end)
                    self.wantsReply = self.wantsReply || wantsReply
                }
            }
            guard case .pending = arrival else { continue }
            if let askedAt, .now - askedAt > Self.patience {
                throw PostgresError(.timeout, "Postgres' walsender does not answer.")
            }
            return false
        }
        return true
    }

    /// When there is something to be said; `acknowledge` says it.
    var acknowledgementDue: ContinuousClock.Instant {
        acknowledgedAt + (wantsReply ? .zero : isAcknowledged ? Self.seldom : Self.often)
    }

    private var isAcknowledged: Bool {
        batch.isEmpty && !decoder.isInTransaction && max(position.lsn, sentUpTo) <= acknowledged
    }

    /// Tells the walsender how far changes are stored, so that the WAL before may go. Where nothing is waiting to be stored
    /// that is all it has sent, so that a quiet publication in a busy database keeps no WAL.
    func acknowledge(stored: LSN) throws {
        let isLevel = batch.isEmpty && !decoder.isInTransaction
        acknowledged = max(acknowledged, isLevel ? max(stored, position.lsn, sentUpTo) : stored)
        let asks = askedAt == nil && .now - acknowledgedAt >= Self.seldom
        if asks { askedAt = .now }
        try connection.putStreamMessage(StreamMessage.acknowledgement(of: acknowledged, asks: asks))
        acknowledgedAt = .now
        wantsReply = false
    }

    /// How far was acknowledged.
    var acknowledgedUpTo: LSN { acknowledged }
}
