import Logging
import Postgres
import Wire

/// Detects changes that were deleted from the outbox before they were read (SchemaRecovery.sql). One for each
/// connection of the feed.
final class LossDetector {
    private let environment: FeedEnvironment
    /// When a window should next include the check for lost changes. Separate from the catalog's due time, because the
    /// catalog is also read again in between, even because the outbox was emptied.
    var dueAt: ContinuousClock.Instant

    init(_ environment: FeedEnvironment, at now: ContinuousClock.Instant) {
        self.environment = environment
        dueAt = now
    }

    /// Call this for every window after all of it was handed on, and before its end is marked.
    ///
    /// A window is checked twice a second, against everything read by the previous check. If one of its rows reports that
    /// something young was deleted, it is checked at once, against everything read when it began.
    func checkWindow(_ window: WindowReader, from start: Snapshot, to end: Snapshot) throws {
        let state = environment.state
        let isFirst = state.outbox == nil
        // After a crash of the server, the place in memory may lie past what the server knows.
        let isAhead = state.outbox.map { !$0.place.precedes(start) } ?? false
        if isAhead {
            state.outbox?.place = start
            state.outbox?.witness = nil
        }
        if window.hasNewsOfOutbox {
            let text = try environment.reader.query(LossSQL.outboxLook).text(0, 0) ?? ""
            try compare(OutboxCheck(Array(text.utf8), at: end), with: start, window, end)
        } else if let text = window.outbox {
            if let last = state.outbox, last.text == text {
                state.outbox?.place = end
            } else {
                let place = state.outbox?.place ?? start
                try compare(OutboxCheck(text, at: end), with: place, window, end)
            }
        }
        guard isFirst || isAhead || window.hasNewsOfOutbox || !window.isEmpty,
            let look = state.outbox, look.witness == nil
        else { return }
        let latest = try environment.reader.query(LossSQL.latestRead, [end.text])
        state.outbox?.witness = latest.count > 0 ? latest.text(0, 0).flatMap { UInt64($0) } : nil
    }

    /// - Parameter place: sees everything read before any of this check's news can have happened.
    private func compare(_ look: OutboxCheck, with place: Snapshot, _ window: WindowReader, _ end: Snapshot) throws {
        let state = environment.state
        var look = look
        var pruned = look.pruned
        let last = state.outbox
        // A new process has no clients to inform; returning clients are judged by their cursors.
        let isFirst = last == nil
        // A recorded deletion may have removed the witness, which then proves nothing about the file.
        look.witness = last?.witness.flatMap { pruned?.sees($0) == true ? nil : $0 }
        if let last, last.file != look.file, let witness = look.witness, try isGone(witness) {
            // The emptying came after this window, so the next one reports it.
            guard !window.hasNewsOfOutbox else { return dueAt = .now }
            look.witness = nil
            pruned = end
            try recordEmptied(by: end)
        }
        // Only now: if the connection had broken, the next check would have to find the same difference.
        state.outbox = look
        guard !isFirst, let pruned, !pruned.precedes(place) else { return }
        environment.logger.warning(
            """
            Changes are missing: they were deleted from the outbox (roost.change) before the hub had read them, as by TRUNCATE, \
            or were not recorded, as a table was not watched for a while. Clients connected for row changes are told to join \
            again and to load their data again.
            """)
        environment.consumer.changesAreGone(upTo: pruned)
        // Later changes get a mark of their own.
        state.recovery.withPoints { $0.handedOn(0) }
    }

    /// True if nothing is left of a transaction that had a change in the outbox.
    private func isGone(_ witness: UInt64) throws -> Bool {
        try environment.reader.query(LossSQL.hasChangeOf, [String(witness)]).text(0, 0) != "t"
    }

    /// Records what the trigger would have recorded, for cursors that come later.
    private func recordEmptied(by end: Snapshot) throws {
        do {
            let running = "{" + end.running.map(String.init).joined(separator: ",") + "}"
            _ = try environment.reader.query(LossSQL.noteEmptied, [String(end.xmax - 1), running])
        } catch let error as PostgresError where error.kind == .server {
            environment.logger.warning(
                """
                The outbox was emptied with its triggers off, and the hub could not record that in Postgres, so \
                clients that come back with a cursor may miss changes: \(error.message)
                """)
        }
    }
}

/// The state of the outbox that shows whether unread changes were deleted (SchemaRecovery.sql), and when it was read.
struct OutboxCheck {
    /// The result of OutboxLook in Losses.sql. While it does not change, nothing was deleted.
    let text: [UInt8]
    /// The snapshot of everything read by then.
    var place: Snapshot
    /// The table's file, which changes when the table is emptied or rewritten.
    let file: String
    /// A transaction that certainly had a change in the outbox; nil if none is known.
    var witness: UInt64?
    /// Sees every transaction that may have lost a change; nil if nothing is gone.
    let pruned: Snapshot?

    /// - Throws: if Postgres does not write such a text.
    init(_ text: [UInt8], at place: Snapshot) throws {
        let fields = try JSON(parsing: text).elements
        guard fields.count == 3 else {
            throw PostgresError(.server, "Postgres returned a state of the outbox that the hub cannot read.")
        }
        self.text = text
        self.place = place
        file = fields[0].description
        pruned = Snapshot(prunedUpTo: fields[1].string, sparing: fields[2].string)
    }
}
