import Wire

/// What a connection has that reads events from an HTTP answer, beside what every connection has.
final class EventReader {
    let format: EventFormat
    /// Of broadcasts it hears only those of this event; nil for all.
    let event: String?
    /// It said where it was, or meant to.
    let hasReturned: Bool
    /// What came of each channel that it asked for, in their order; nil while it is not known.
    private(set) var verdicts: [Verdict?]
    private let topics: [String]
    /// Where it is in each of its channels: at first where its client says. Of all of them from the beginning, so that none is
    /// forgotten by whoever is cut off before all are joined.
    private(set) var positions: [(key: ChannelKey, position: EventPosition)] = []
    /// Its answer has begun.
    var isOpen = false
    /// It is further than it was told last.
    var hasMoved = false
    /// Its answer ends when the feed is back: one of its channels cannot be served until then.
    var awaitsFeed = false

    struct Verdict {
        /// Nil where the channel was joined.
        var refusal: Refusal?
        /// Whether it goes on where it was; nil where there is nothing to go on from.
        var isResumed: Bool?
        /// Why not.
        var reason: String?
    }

    init(_ request: EventRequest, _ format: EventFormat) {
        self.format = format
        event = request.event
        hasReturned = request.lastID != nil
        topics = request.channels.map(\.topic)
        verdicts = Array(repeating: nil, count: topics.count)
    }

    /// To be called for each channel, in their order.
    func expect(_ key: ChannelKey, at position: EventPosition?) { positions.append((key, position ?? EventPosition())) }

    func move(_ index: Int, _ change: (inout EventPosition) -> Void) {
        let before = positions[index].position
        change(&positions[index].position)
        if positions[index].position != before { hasMoved = true }
    }

    func note(_ verdict: Verdict, on topic: Substring) {
        guard let index = topics.firstIndex(where: { $0.utf8.elementsEqual(topic.utf8) }) else { return }
        verdicts[index] = verdict
    }

    var isDecided: Bool { verdicts.allSatisfy { $0 != nil } }

    /// It gets something, and could get more another time.
    var lacksWhatPasses: Bool { verdicts.contains { $0?.refusal?.passesWithTheDatabase == true } }

    /// Why it gets nothing at all; nil where it gets something.
    var refusal: Refusal? {
        guard verdicts.allSatisfy({ $0?.refusal != nil }) else { return nil }
        return verdicts.first.flatMap { $0?.refusal }
    }

    /// The first event: what came of each channel, and whether all go on where they were.
    ///
    /// - Parameter retry: milliseconds after which a browser is to come back.
    func connected(retry: Int) -> Frame {
        let payload = JSONWriter.object { writer in
            let resumed = verdicts.compactMap { $0?.isResumed }
            if hasReturned { writer.member("resumed", !resumed.isEmpty && resumed.allSatisfy { $0 }) }
            writer.array("channels", zip(topics, verdicts)) { writer, channel in
                writer.object { writer in
                    writer.member("topic", channel.0)
                    channel.1?.write(to: &writer)
                }
            }
        }
        return EventFrame(format, topic: nil).event("connected", payload: [payload[...]], retry: retry)
    }
}

extension EventReader.Verdict {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("status", refusal == nil ? "ok" : "error")
        if let refusal {
            writer.member("code", refusal.status)
            writer.member("reason", refusal.reason)
        }
        if let isResumed { writer.member("resumed", isResumed) }
        if let reason { writer.member("reason", reason) }
    }
}

extension Refusal {
    /// The database is why, or changes of it, so that a reader who comes again is served.
    var passesWithTheDatabase: Bool {
        switch self {
        case .databaseUnavailable, .policyFailed, .channelPolicyFailed, .changesLost: true
        default: false
        }
    }
}
