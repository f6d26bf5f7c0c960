import HTTP
package import Streams

/// The options of a GET (Durable Streams, sections 5.6 to 5.8).
package struct StreamReading: Sendable {
    package let position: StreamPosition
    package let mode: Mode
    /// The query's `cursor`.
    package let cursor: String?
    /// `If-None-Match`.
    package let known: String?

    package enum Mode: Sendable, Equatable {
        /// The available content.
        case page
        /// The available content, or the next to arrive.
        case longPoll
        case events
        /// Plain events, one for each message, named by one of its members. The reader may wait for a stream that does not exist yet.
        case messages(namedBy: String?)
    }

    /// The stream and the offset of the reader's last event; nil if it has none.
    package let last: StreamEventID?
    /// The turns of a name that plain events belong to.
    package let turns: Turns

    package struct Turns: Sendable, Equatable {
        /// Each turn of a conversation is a generation of the name: an ended one is no answer to a new reader, which
        /// waits for the next, and a reader of one turn is never shown another.
        package var areApart = false
        /// The turn that the reader knows; it waits for another one.
        package var known: StreamID?
    }

    init(_ head: HTTPHead) throws(StreamComplaint) {
        if head.query("live") == "events" {
            try self.init(messagesFor: head, namedBy: head.query("event"), areTurns: head.query("turns") == "true")
        } else {
            try self.init(protocol: head)
        }
    }

    /// A request by a browser's `EventSource`: from `Last-Event-ID`, or from the start.
    ///
    /// - Parameter areTurns: see `Turns`.
    init(messagesFor head: HTTPHead, namedBy member: String?, areTurns: Bool) throws(StreamComplaint) {
        var turns = Turns(areApart: areTurns)
        if let text = head.query("after") {
            guard let known = StreamID(text) else {
                throw .badRequest("after is a Stream-Generation that you received")
            }
            turns.known = known
        }
        self.turns = turns
        mode = .messages(namedBy: member)
        position = .start
        cursor = nil
        known = nil
        last = (head.field("last-event-id") ?? head.query("last_event_id")).flatMap { StreamEventID($0) }
    }

    private init(protocol head: HTTPHead) throws(StreamComplaint) {
        let query = head.allQuery
        last = nil
        turns = Turns()
        switch query["live"] {
        case nil: mode = .page
        case "long-poll": mode = .longPoll
        case "sse": mode = .events
        case _?: throw .badRequest("live must be long-poll, sse or events")
        }
        guard head.queryCount("offset") <= 1 else { throw .badRequest("offset may appear only once in the query") }
        switch query["offset"] {
        case let text?:
            guard let position = StreamPosition(text) else {
                throw .badRequest("This offset was never given out: send -1, now, or a Stream-Next-Offset")
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

/// The `id` of a plain event: its stream, since one that is deleted and created again is another, and its end.
package struct StreamEventID: Sendable, Equatable {
    package let stream: StreamID
    package let end: Int

    package init(stream: StreamID, end: Int) {
        self.stream = stream
        self.end = end
    }

    /// Nil if the text is not a value of `text`.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let stream = StreamID(parts[0]), let end = Int(parts[1]), end >= 0 else {
            return nil
        }
        self.init(stream: stream, end: end)
    }

    package var text: String { stream.text + "-" + String(end) }
}
