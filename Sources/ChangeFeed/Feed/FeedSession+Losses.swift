import Logging
import Postgres

/// Notices what was deleted from the outbox before it was read (Migration012Losses.sql).
extension FeedSession {
    /// To be called for every window once all of it is handed on, and before its end is marked.
    ///
    /// A window looks twice a second, and by what was read at the last look; at once, and by what was read when it began,
    /// where one of its rows says that something young was deleted.
    func lookForLosses(_ window: WindowReader, from start: Snapshot, to end: Snapshot) throws {
        let isFirst = loop.progress.outboxLook == nil
        // After a crash of the server the place in memory may lie beyond what it knows.
        let isAhead = loop.progress.outboxLook.map { !$0.place.precedes(start) } ?? false
        if isAhead {
            loop.progress.outboxLook?.place = start
            loop.progress.outboxLook?.witness = nil
        }
        if window.hasNewsOfOutbox {
            let text = try reader.query(SQL.outboxLook).text(0, 0) ?? ""
            try compare(OutboxCheck(Array(text.utf8), at: end), with: start, window, end)
        } else if let text = window.outbox {
            if let last = loop.progress.outboxLook, last.text == text {
                loop.progress.outboxLook?.place = end
            } else {
                let place = loop.progress.outboxLook?.place ?? start
                try compare(OutboxCheck(text, at: end), with: place, window, end)
            }
        }
        guard isFirst || isAhead || window.hasNewsOfOutbox || !window.handed.isEmpty,
            let look = loop.progress.outboxLook, look.witness == nil
        else { return }
        let latest = try reader.query(SQL.latestRead, [end.text])
        loop.progress.outboxLook?.witness = latest.count > 0 ? latest.text(0, 0).flatMap { UInt64($0) } : nil
    }

    /// - Parameter place: sees what was read before anything of this look's news can have happened.
    private func compare(_ look: OutboxCheck, with place: Snapshot, _ window: WindowReader, _ end: Snapshot) throws {
        var look = look
        var pruned = look.pruned
        let last = loop.progress.outboxLook
        // A new process has told nobody anything; who comes back to it is judged by its cursor.
        let isFirst = last == nil
        // What is deleted in the open is noted, and says nothing of the file.
        look.witness = last?.witness.flatMap { pruned?.sees($0) == true ? nil : $0 }
        if let last, last.file != look.file, let witness = look.witness, try isGone(witness) {
            // That came after this window, so it is for the next one to tell.
            guard !window.hasNewsOfOutbox else { return lookAt = .now }
            look.witness = nil
            pruned = end
            try noteEmptied(by: end)
        }
        // Not before: where the connection broke, the next look has to find the same.
        loop.progress.outboxLook = look
        guard !isFirst, let pruned, !pruned.precedes(place) else { return }
        loop.logger.warning(
            """
            Changes were deleted from the outbox (roost.change) before the hub had read them, as by TRUNCATE: whoever is \
            connected for row changes is told to join again, and to load the data again.
            """)
        loop.consumer.changesAreGone(upTo: pruned)
        // What comes after them gets a mark of its own.
        loop.progress.marks.handedOn()
    }

    /// Nothing is left of a transaction of which a change was there.
    private func isGone(_ witness: UInt64) throws -> Bool {
        try reader.query(SQL.hasChangeOf, [String(witness)]).text(0, 0) != "t"
    }

    /// Does what the trigger would have done, for cursors that come later.
    private func noteEmptied(by end: Snapshot) throws {
        do {
            let running = "{" + end.running.map(String.init).joined(separator: ",") + "}"
            _ = try reader.query(SQL.noteEmptied, [String(end.xmax - 1), running])
        } catch let error as PostgresError where error.kind == .server {
            loop.logger.warning(
                """
                The outbox was emptied with its triggers off, and Postgres does not take a note of that, so clients that \
                come back with a cursor may lack changes: \(error.message)
                """)
        }
    }
}
