/// What an operator may ask of whoever keeps streams. From any thread; must not wait. The answer comes once, from another thread.
package protocol StreamInspector: Sendable {
    /// All streams in figures, and up to `limit` each of those that grew most and of those that are newest.
    func survey(limit: Int, then reply: @escaping @Sendable (StreamSurvey) -> Void)

    /// One stream with up to `limit` of its producers. The answer is nil where there is no such stream.
    func inspect(_ name: StreamName, limit: Int, then reply: @escaping @Sendable (StreamReport?) -> Void)
}

/// All streams at one moment, and some of them.
package struct StreamSurvey: Sendable {
    package var streams = 0
    package var open = 0
    package var stalled = 0
    package var bytes = 0
    /// Those that grew since the last survey, the fastest first.
    package var busiest: [StreamLine] = []
    /// Those that were made last, the latest first.
    package var newest: [StreamLine] = []

    package init() {}
}

/// One stream as a line of a list.
package struct StreamLine: Sendable {
    package let snapshot: StreamSnapshot
    /// Milliseconds since 1970.
    package let createdAt: Int64
    /// Appends that were kept since the hub began.
    package let appends: Int
    /// Milliseconds since 1970; nil where nothing was appended since the hub began.
    package let appendedAt: Int64?
    /// Bytes and appends a second since the last survey; nil where there was none a moment ago.
    package let rates: Rates?
    /// Its end waits for its row to be committed.
    package let isClosing: Bool
    /// Who appended last; nil where nobody numbers appends.
    package let producer: InspectedProducer?
    /// Connections by which its producers append. Those without one send short requests.
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

/// A producer that numbers its appends, as the stream knows it.
package struct InspectedProducer: Sendable, Equatable {
    package let id: String
    package let epoch: Int
    /// Of its last append.
    package let sequence: Int
    /// The stream's bytes behind its last append.
    package let end: Int
}

/// All that is told of one stream.
package struct StreamReport: Sendable {
    package let line: StreamLine
    /// Who appended last comes first.
    package let producers: [InspectedProducer]
    /// How many there are.
    package let producerCount: Int
    /// The most bytes that it may have.
    package let limit: Int
    /// Requests that wait for its end.
    package let waiting: Int
    /// Why its last attempt to end failed, if it did not go on since.
    package let trouble: String?
    /// Its newest content, cut and without tokens (`StreamBuffer.excerpt`).
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
