/// How a stream stands.
package enum StreamStatus: Sendable, Equatable {
    case open
    /// Its producer is silent, or its connection broke; it may come back.
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
    /// What the statement of `streams.on_close` returned, as JSON text: the row that was written together with the end.
    package var row: [UInt8]?

    package enum Reason: String, Sendable, CaseIterable {
        /// The producer closed it.
        case complete
        /// A watcher cancelled it: nobody is shown a byte behind its end, and its producer is told.
        case cancelled
        /// Its producer was gone for too long.
        case aborted
    }

    package init(_ reason: Reason, at time: Int64, row: [UInt8]? = nil) {
        self.reason = reason
        at = time
        self.row = row
    }
}

/// One generation of a name: what was made of it at one time. A name that is deleted and made again, or opened for its next turn, has
/// another, and nothing of the one is ever taken for the other's: offsets, events, appends and cancels say which they mean.
package struct StreamID: Hashable, Sendable {
    package let number: UInt64
    package init(_ number: UInt64) { self.number = number }

    /// As clients are told it: up to 16 hexadecimal digits.
    package var text: String { String(number, radix: 16) }

    /// Nil where the text is none that `text` makes.
    package init?(_ text: some StringProtocol) {
        guard 1...16 ~= text.utf8.count, text.utf8.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
            let number = UInt64(text, radix: 16)
        else { return nil }
        self.number = number
    }
}

/// What can be known of a stream at one moment without its bytes.
package struct StreamSnapshot: Sendable, Equatable {
    package let id: StreamID
    package let name: StreamName
    package let configuration: StreamConfiguration
    /// The earliest offset that is kept: zero but for a window (`StreamBound.keepsNewest`).
    package let start: Int
    /// Behind its last byte; all of them are durable as far as `streams.sync` asks for it.
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
