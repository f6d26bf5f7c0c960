import Logging

/// Notices what was deleted from the outbox before it was read (Migration012Losses.sql).
extension FeedSession {
    /// To be called for every window once all of it is handed on, and before its end is marked.
    ///
    /// A window looks twice a second, and by what was read at the last look; at once, and by what was read when it began,
    /// where one of its rows says that something young was deleted.
    func lookForLosses(_ window: WindowReader, from start: Snapshot, to end: Snapshot) throws {
        if window.hasNewsOfOutbox {
            let text = try reader.query(SQL.outboxLook).text(0, 0) ?? ""
            try compare(OutboxLook(Array(text.utf8), at: end), with: start, window, end)
        } else if let text = window.outbox {
            guard let last = loop.progress.outboxLook, last.text == text else {
                // After a crash of the server the place in memory may lie beyond what it knows.
                let place = loop.progress.outboxLook.flatMap { $0.place.precedes(start) ? $0.place : nil } ?? start
                return try compare(OutboxLook(text, at: end), with: place, window, end)
            }
            loop.progress.outboxLook?.place = end
        }
    }

    /// - Parameter place: sees what was read before anything of this look's news can have happened.
    private func compare(_ look: OutboxLook, with place: Snapshot, _ window: WindowReader, _ end: Snapshot) throws {
        var pruned = look.pruned
        // A new process has told nobody anything; who comes back to it is judged by its cursor.
        let isFirst = loop.progress.outboxLook == nil
        let isSameFile = isFirst || loop.progress.outboxLook?.file == look.file
        if !isSameFile, !window.hasNewsOfOutbox, try isNothingLeft(of: place) {
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

    /// Where nothing was there, nobody knows.
    private func isNothingLeft(of place: Snapshot) throws -> Bool {
        try reader.query(SQL.hasChangesBefore, [place.text]).text(0, 0) != "t"
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
