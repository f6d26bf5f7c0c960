/// An operator's questions to the keeper of streams. Thread-safe; must not wait. The answer comes once, from another thread.
package protocol StreamInspector: Sendable {
    /// Figures of all streams, and up to `limit` each of those that grew most and of the newest.
    func surveyStreams(limit: Int, then reply: @escaping @Sendable (StreamSurvey) -> Void)

    /// One stream with up to `limit` of its producers. The answer is nil if there is no such stream.
    func inspectStream(_ name: StreamName, limit: Int, then reply: @escaping @Sendable (StreamReport?) -> Void)
}

/// All streams at one moment, and some of them in detail.
package struct StreamSurvey: Sendable {
    package var streams = 0
    package var open = 0
    package var stalled = 0
    package var bytes = 0
    /// Streams that grew since the last survey, the fastest first.
    package var busiest: [StreamLine] = []
    /// The streams created last, the latest first.
    package var newest: [StreamLine] = []

    package init() {}
}

/// One stream as a line of a list.
package struct StreamLine: Sendable {
    package let snapshot: StreamSnapshot
    /// Milliseconds since 1970.
    package let createdAt: Int64
    /// Appends since the hub started.
    package let appends: Int
    /// Milliseconds since 1970; nil if nothing was appended since the hub started.
    package let appendedAt: Int64?
    /// Bytes and appends per second since the last survey; nil without a recent one.
    package let rates: Rates?
    /// The end waits for its row to be committed.
    package let isClosing: Bool
    /// The producer that appended last; nil if no producer numbers its appends.
    package let producer: InspectedProducer?
    /// Connections through which producers append. Producers without one send short requests.
    package let holds: [StreamHold]

    package struct Rates: Sendable, Equatable {
        package let bytes: Double
        package let appends: Double

        package init(bytes: Double, appends: Double) {
            self.bytes = bytes
            self.appends = appends
        }
    }

    package init(
        _ snapshot: StreamSnapshot, createdAt: Int64, appends: Int, appendedAt: Int64?, rates: Rates?, isClosing: Bool,
        producer: InspectedProducer?, holds: [StreamHold]
    ) {
        self.snapshot = snapshot
        self.createdAt = createdAt
        self.appends = appends
        self.appendedAt = appendedAt
        self.rates = rates
        self.isClosing = isClosing
        self.producer = producer
        self.holds = holds
    }
}

/// A producer that numbers its appends, as known to the stream.
package struct InspectedProducer: Sendable, Equatable {
    package let id: String
    package let epoch: Int
    /// The sequence of its last append.
    package let sequence: Int
    /// The stream's length after its last append.
    package let end: Int
}

/// Everything reported about one stream.
package struct StreamReport: Sendable {
    package let line: StreamLine
    /// The producer that appended last comes first.
    package let producers: [InspectedProducer]
    /// The number of producers known.
    package let producerCount: Int
    /// The most bytes that the stream may have.
    package let limit: Int
    /// Requests that wait for the end.
    package let waiting: Int
    /// Why the last attempt to end failed, unless the stream has continued since.
    package let trouble: String?
    /// The newest content, shortened and without tokens (`StreamBuffer+Excerpt`).
    package let excerpt: [String]

    package init(
        _ line: StreamLine, producers: [InspectedProducer], producerCount: Int, limit: Int, waiting: Int,
        trouble: String?, excerpt: [String]
    ) {
        self.line = line
        self.producers = producers
        self.producerCount = producerCount
        self.limit = limit
        self.waiting = waiting
        self.trouble = trouble
        self.excerpt = excerpt
    }
}
