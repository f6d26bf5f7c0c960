import Logging
import Postgres
import Wire

/// Notices what was deleted from the outbox before it was read (Migration012Losses.sql). One for each connection of the feed.
final class LossDetector {
    private let environment: FeedEnvironment
    /// When a window is to bring along what tells whether changes went. The catalog is read anew in between, also because the
    /// outbox was emptied, so this has a time of its own.
    var dueAt: ContinuousClock.Instant

    init(_ environment: FeedEnvironment, at now: ContinuousClock.Instant) {
        self.environment = environment
        dueAt = now
    }

    /// To be called for every window once all of it is handed on, and before its end is marked.
    ///
    /// A window looks twice a second, and by what was read at the last look; at once, and by what was read when it began,
    /// where one of its rows says that something young was deleted.
    func look(_ window: WindowReader, from start: Snapshot, to end: Snapshot) throws {
        let state = environment.state
        let isFirst = state.outbox == nil
        // After a crash of the server the place in memory may lie beyond what it knows.
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

    /// - Parameter place: sees what was read before anything of this look's news can have happened.
    private func compare(_ look: OutboxCheck, with place: Snapshot, _ window: WindowReader, _ end: Snapshot) throws {
        let state = environment.state
        var look = look
        var pruned = look.pruned
        let last = state.outbox
        // A new process has told nobody anything; who comes back to it is judged by its cursor.
        let isFirst = last == nil
        // What is deleted in the open is noted, and says nothing of the file.
        look.witness = last?.witness.flatMap { pruned?.sees($0) == true ? nil : $0 }
        if let last, last.file != look.file, let witness = look.witness, try isGone(witness) {
            // That came after this window, so it is for the next one to tell.
            guard !window.hasNewsOfOutbox else { return dueAt = .now }
            look.witness = nil
            pruned = end
            try noteEmptied(by: end)
        }
        // Not before: where the connection broke, the next look has to find the same.
        state.outbox = look
        guard !isFirst, let pruned, !pruned.precedes(place) else { return }
        environment.logger.warning(
            """
            Changes are missing: they were deleted from the outbox (roost.change) before the hub had read them, as by TRUNCATE, \
            or were not recorded, as a table was not watched for a while. Clients connected for row changes are told to join \
            again and to load their data again.
            """)
        environment.consumer.changesAreGone(upTo: pruned)
        // What comes after them gets a mark of its own.
        state.recovery.use { $0.handedOn(0) }
    }

    /// Nothing is left of a transaction of which a change was there.
    private func isGone(_ witness: UInt64) throws -> Bool {
        try environment.reader.query(LossSQL.hasChangeOf, [String(witness)]).text(0, 0) != "t"
    }

    /// Does what the trigger would have done, for cursors that come later.
    private func noteEmptied(by end: Snapshot) throws {
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

/// What tells whether anything went from the outbox that was not read (Migration012Losses.sql), and when it was looked at.
struct OutboxCheck {
    /// As OutboxLook in Losses.sql makes it. While it is the same, nothing went.
    let text: [UInt8]
    /// What was read by then.
    var place: Snapshot
    /// The table's; another one when it was emptied or written anew.
    let file: String
    /// A transaction of which a change was certainly there; nil where none is known.
    var witness: UInt64?
    /// Sees every transaction of which a change may be gone; nil where nothing is.
    let pruned: Snapshot?

    /// - Throws: where the text is none that Postgres makes.
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
