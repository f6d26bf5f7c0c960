package import HTTP
package import Streams

/// What a GET asks for (Durable Streams, sections 5.6 to 5.8).
package struct StreamReading: Sendable {
    package let position: StreamPosition
    package let mode: Mode
    /// The query's `cursor`.
    package let cursor: String?
    /// `If-None-Match`.
    package let known: String?

    package enum Mode: Sendable, Equatable {
        /// What is there.
        case page
        /// What is there, or what comes next.
        case longPoll
        case events
    }

    init(_ head: some RequestHead) throws(StreamComplaint) {
        let query = head.allQuery
        switch query["live"] {
        case nil: mode = .page
        case "long-poll": mode = .longPoll
        case "sse": mode = .events
        case _?: throw .badRequest("live is long-poll or sse")
        }
        guard head.queryCount("offset") <= 1 else { throw .badRequest("offset may stand in the query once") }
        switch query["offset"] {
        case let text?:
            guard let position = StreamPosition(text) else {
                throw .badRequest("This offset is none that was given out: send -1, now, or a Stream-Next-Offset")
            }
            self.position = position
        case nil:
            guard mode == .page else { throw .badRequest("offset is missing: send -1, now, or a Stream-Next-Offset") }
            position = .start
        }
        cursor = query["cursor"]
        known = head.field("if-none-match")
    }
}
