import Postgres

/// The stream of a slot: decodes its messages into a batch, and acknowledges the changes that are stored. On the
/// capture's thread.
final class CaptureStream {
    let connection: PostgresConnection
    let batch = CaptureBatch()
    private var decoder: CaptureDecoder
    /// The end of the WAL that the walsender has sent.
    private var sentUpTo = LSN(0)
    private var acknowledged = LSN(0)
    private var acknowledgedAt = ContinuousClock.now
    private var wantsReply = false
    /// The time of the request for a reply that the walsender still owes.
    private var askedAt: ContinuousClock.Instant?
    /// The limit of rows in a batch (`BatchTrials`); nil for the usual one.
    var mostRows: Int?

    /// Intervals between acknowledgements while the position moves and while it rests: a walsender that hears nothing
    /// for 8 s ends the session.
    private static let (often, seldom) = (Duration.milliseconds(100), Duration.seconds(2))
    /// A walsender that owes a reply for this long hangs or is cut off.
    private static let patience = Duration.seconds(6)
    private static let usualRows = 4_000
    private static let mostBytes = 4_194_304

    /// Starts streaming.
    ///
    /// - Throws: `PostgresError`; with SQLSTATE 55006 if another session reads the slot.
    init(of slot: String, after position: CapturePosition, on connection: PostgresConnection) throws {
        self.connection = connection
        decoder = CaptureDecoder(after: position)
        try connection.beginStream(
            "START_REPLICATION SLOT \"\(slot)\" LOGICAL \(position.lsn) (proto_version '1', publication_names '\"roost\"')"
        )
    }

    /// The stored position once `batch` is stored.
    var position: CapturePosition { decoder.position }

    /// The place in the WAL at which the transaction that is being read was committed.
    var commit: LSN? { decoder.commit }

    /// Whether the batch may be stored: it ends with a transaction or is full.
    var isAtBoundary: Bool { isFull || !decoder.isInTransaction }

    var isFull: Bool { batch.rows >= mostRows ?? Self.usualRows || batch.bytes >= Self.mostBytes }

    /// Reads the messages that have arrived, up to a full batch or, between transactions, until `enough` returns true.
    ///
    /// - Returns: whether more may be available at once.
    /// - Throws: `PostgresError`, also if the walsender does not answer; `MalformedStream`.
    func readMessages(until enough: () -> Bool) throws -> Bool {
        while !isFull {
            if !decoder.isInTransaction, enough() { return true }
            let arrival = try connection.takeStreamMessage { bytes in
                askedAt = nil
                switch try StreamMessage(bytes) {
                case .data(let message, _): try decoder.decodeMessage(PgoutputMessage(message), into: batch)
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

    /// The time by which `acknowledge` should be called.
    var acknowledgementDue: ContinuousClock.Instant {
        acknowledgedAt + (wantsReply ? .zero : isAcknowledged ? Self.seldom : Self.often)
    }

    private var isAcknowledged: Bool {
        batch.isEmpty && !decoder.isInTransaction && max(position.lsn, sentUpTo) <= acknowledged
    }

    /// Tells the walsender how far changes are stored, so that it can release earlier WAL. While nothing waits to be
    /// stored, everything it has sent is acknowledged, so that a quiet publication in a busy database retains no WAL.
    func acknowledge(stored: LSN) throws {
        let isLevel = batch.isEmpty && !decoder.isInTransaction
        acknowledged = max(acknowledged, isLevel ? max(stored, position.lsn, sentUpTo) : stored)
        let asks = askedAt == nil && .now - acknowledgedAt >= Self.seldom
        if asks { askedAt = .now }
        try connection.putStreamMessage(StreamMessage.acknowledgement(of: acknowledged, asks: asks))
        acknowledgedAt = .now
        wantsReply = false
    }

    /// The last acknowledged place.
    var acknowledgedUpTo: LSN { acknowledged }
}
