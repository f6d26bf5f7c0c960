import Wire

/// State of a connection that reads events from an HTTP response, in addition to the state of every connection.
final class EventReader {
    let format: EventFormat
    /// The only event whose broadcasts the reader hears; nil for all.
    let event: String?
    /// The client named a position, or tried to.
    let hasReturned: Bool
    /// The outcome for each requested channel, in the order of the request; nil until known.
    private(set) var verdicts: [Verdict?]
    private let topics: [String]
    /// The position in each channel, initially as the client states it. Complete from the start, so that a reader that
    /// is cut off before all channels are joined loses none.
    private(set) var positions: [(key: ChannelKey, position: EventPosition)] = []
    /// The response has begun.
    var isOpen = false
    /// The reader is past the position it was last told.
    var hasMoved = false
    /// The response ends when the feed is back, because one of its channels cannot be served until then.
    var awaitsFeed = false

    struct Verdict {
        /// Nil if the channel was joined.
        var refusal: Refusal?
        /// Whether the channel resumed at the client's position; nil if there is no position to resume from.
        var isResumed: Bool?
        /// The reason why it did not resume.
        var reason: String?
    }

    init(_ request: EventRequest, _ format: EventFormat) {
        self.format = format
        event = request.event
        hasReturned = request.lastID != nil
        topics = request.channels.map(\.topic)
        verdicts = Array(repeating: nil, count: topics.count)
    }

    /// Adds a channel. Call for each, in the order of the request.
    func addChannel(_ key: ChannelKey, at position: EventPosition?) {
        positions.append((key, position ?? EventPosition()))
    }

    func movePosition(_ index: Int, _ change: (inout EventPosition) -> Void) {
        let before = positions[index].position
        change(&positions[index].position)
        if positions[index].position != before { hasMoved = true }
    }

    func recordVerdict(_ verdict: Verdict, on topic: Substring) {
        guard let index = topics.firstIndex(where: { $0.utf8.elementsEqual(topic.utf8) }) else { return }
        verdicts[index] = verdict
    }

    var isDecided: Bool { verdicts.allSatisfy { $0 != nil } }

    /// Whether a channel was refused for a cause that passes, so that another attempt could get more.
    var lacksWhatPasses: Bool { verdicts.contains { $0?.refusal?.passesWithTheDatabase == true } }

    /// The reason why the reader gets nothing at all; nil if it gets something.
    var refusal: Refusal? {
        guard verdicts.allSatisfy({ $0?.refusal != nil }) else { return nil }
        return verdicts.first.flatMap { $0?.refusal }
    }

    /// Builds the first event: the outcome for each channel, and whether all of them resumed.
    ///
    /// - Parameter retry: milliseconds after which a browser should reconnect.
    func connectedFrame(retry: Int) -> Frame {
        let payload = JSONWriter.object { writer in
            let resumed = verdicts.compactMap { $0?.isResumed }
            if hasReturned { writer.writeMember("resumed", !resumed.isEmpty && resumed.allSatisfy { $0 }) }
            writer.array("channels", zip(topics, verdicts)) { writer, channel in
                writer.object { writer in
                    writer.writeMember("topic", channel.0)
                    channel.1?.writeMembers(to: &writer)
                }
            }
        }
        return EventFrame(format, topic: nil).event("connected", payload: [payload[...]], retry: retry)
    }
}

extension EventReader.Verdict {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        writer.writeMember("status", refusal == nil ? "ok" : "error")
        if let refusal {
            writer.writeMember("code", refusal.status)
            writer.writeMember("reason", refusal.reason)
        }
        if let isResumed { writer.writeMember("resumed", isResumed) }
        if let reason { writer.writeMember("reason", reason) }
    }
}

extension Refusal {
    /// Whether the cause is the database or its changes, so that a reader that reconnects may be served.
    var passesWithTheDatabase: Bool {
        switch self {
        case .databaseUnavailable, .policyFailed, .channelPolicyFailed, .changesLost: true
        default: false
        }
    }
}
