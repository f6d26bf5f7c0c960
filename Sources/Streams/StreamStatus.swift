/// The status of a stream.
package enum StreamStatus: Sendable, Equatable {
    case open
    /// The producer is silent, or its connection broke; it may come back.
    case stalled
    /// Nothing is ever appended again.
    case ended(StreamEnding)

    package var ending: StreamEnding? { if case .ended(let ending) = self { ending } else { nil } }
}

/// The end of a stream.
package struct StreamEnding: Sendable, Equatable {
    package let reason: Reason
    /// Milliseconds since 1970.
    package let at: Int64
    /// The result of the statement of `streams.on_close` as JSON text: the row that was written together with the end.
    package var row: [UInt8]?

    package enum Reason: String, Sendable, CaseIterable {
        /// The producer closed the stream.
        case complete
        /// A watcher cancelled the stream: no reader sees a byte after its end, and the producer is told.
        case cancelled
        /// The producer was gone for too long.
        case aborted
    }

    package init(_ reason: Reason, at time: Int64, row: [UInt8]? = nil) {
        self.reason = reason
        at = time
        self.row = row
    }
}

/// One generation of a name. A name that is deleted and created again, or opened for its next turn, gets another one,
/// and the two are never confused: offsets, events, appends and cancels say which they mean.
package struct StreamID: Hashable, Sendable {
    package let number: UInt64
    package init(_ number: UInt64) { self.number = number }

    /// The form for clients: up to 16 hexadecimal digits.
    package var text: String { String(number, radix: 16) }

    /// Nil if the text is not a value of `text`.
    package init?(_ text: some StringProtocol) {
        guard 1...16 ~= text.utf8.count, text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let number = UInt64(text, radix: 16)
        else { return nil }
        self.number = number
    }
}

/// The state of a stream at one moment, without its bytes.
package struct StreamSnapshot: Sendable, Equatable {
    package let id: StreamID
    package let name: StreamName
    package let configuration: StreamConfiguration
    /// The earliest offset kept: zero except for a window (`StreamBound.keepsNewest`).
    package let start: Int
    /// The offset after its last byte; everything before it is durable as far as `streams.sync` requires.
    package let end: Int
    package let status: StreamStatus

    package init(
        id: StreamID, name: StreamName, configuration: StreamConfiguration, start: Int = 0, end: Int,
        status: StreamStatus
    ) {
        self.id = id
        self.name = name
        self.configuration = configuration
        self.start = start
        self.end = end
        self.status = status
    }
}
