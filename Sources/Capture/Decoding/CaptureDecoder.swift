/// Turns the messages of a stream into batches, and tracks the position that a batch reaches once it is stored.
///
/// Pure: messages in, rows into a batch. A stream that starts again may repeat changes that were stored before; these
/// are skipped, as Postgres decodes a transaction to the same changes each time.
package struct CaptureDecoder {
    private struct Transaction {
        let commit: LSN
        let time: Int64
        let xid: UInt32
        /// The changes read so far, including those stored before.
        var rows = 0
    }

    /// The stored position once all that was decoded is stored.
    package private(set) var position: CapturePosition
    /// The number of changes to skip in the current transaction.
    private var stored = 0
    private var transaction: Transaction?
    private var relations: [UInt32: CapturedRelation] = [:]

    /// - Parameter position: the position that is stored already.
    package init(after position: CapturePosition) { self.position = position }

    /// Whether the next change belongs to the same transaction as the last.
    package var isInTransaction: Bool { transaction != nil }

    /// The place in the WAL at which the transaction that is being read was committed.
    package var commit: LSN? { transaction?.commit }

    /// - Throws: `MalformedStream`.
    package mutating func decodeMessage(_ message: PgoutputMessage, into batch: CaptureBatch) throws(MalformedStream) {
        switch message {
        case .begin(let commit, let time, let xid):
            transaction = Transaction(commit: commit, time: time, xid: xid)
            // Postgres does not send a transaction that is stored whole; if it did, nothing of it may be stored twice.
            stored = commit < position.lsn ? .max : position.part?.commit == commit ? position.part?.rows ?? 0 : 0
        case .commit(let end):
            transaction = nil
            if end > position.lsn { position = CapturePosition(lsn: end) }
            batch.transactions += 1
        case .relation(let description):
            relations[description.oid] = CapturedRelation(description)
        case .insert(let oid, let new):
            try addChange("I", try relation(oid, new), new: new, into: batch)
        case .update(let oid, let old, let new):
            if let old { _ = try relation(oid, old.tuple) }
            try addChange("U", try relation(oid, new), new: new, old: old, into: batch)
        case .delete(let oid, let old):
            try addChange("D", try relation(oid, old.tuple), old: old, into: batch)
        case .truncate(let oids):
            for oid in oids {
                try addChange("T", CapturedRelation(RelationDescription(oid: oid, columns: [])), into: batch)
            }
        case .other: break
        }
    }

    private func relation(_ oid: UInt32, _ tuple: PgoutputMessage.Tuple) throws(MalformedStream) -> CapturedRelation {
        guard let relation = relations[oid], relation.description.columns.count == tuple.count else {
            throw MalformedStream()
        }
        return relation
    }

    private mutating func addChange(
        _ operation: Unicode.Scalar, _ relation: CapturedRelation, new: PgoutputMessage.Tuple? = nil,
        old: PgoutputMessage.OldTuple? = nil, into batch: CaptureBatch
    ) throws(MalformedStream) {
        guard transaction != nil else { throw MalformedStream() }
        transaction?.rows += 1
        guard let transaction, transaction.rows > stored else { return }
        batch.append(
            UInt8(ascii: operation), of: relation, new: new, old: old, commit: transaction.commit,
            time: transaction.time, xid: transaction.xid)
        position.part = CapturePosition.Part(commit: transaction.commit, rows: transaction.rows)
    }
}
