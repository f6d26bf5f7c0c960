/// Where a reader begins, as the query's `offset` says it (Durable Streams, offsets).
///
/// An offset is a count of bytes in sixteen digits: opaque to clients, in the order of their text, and never `-1` or `now`.
package enum StreamPosition: Equatable, Sendable {
    case start
    /// Behind all that is there when the request is answered.
    case end
    case at(Int)

    private static let digits = 16

    /// Nil where the text is none that a client can have been given.
    package init?(_ text: String) {
        switch text {
        case "-1": self = .start
        case "now": self = .end
        default:
            guard text.utf8.count == Self.digits, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let offset = Int(text)
            else { return nil }
            self = .at(offset)
        }
    }

    package static func text(_ offset: Int) -> String {
        let written = String(offset)
        return String(repeating: "0", count: max(0, digits - written.utf8.count)) + written
    }

    /// - Parameter end: of the stream.
    package func offset(in end: Int) -> Int {
        switch self {
        case .start: 0
        case .end: end
        case .at(let offset): offset
        }
    }
}
