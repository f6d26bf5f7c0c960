package import Streams

/// Where a reader begins, as the query's `offset` says it (Durable Streams, offsets).
///
/// An offset is the generation that it is of and a count of bytes, in sixteen digits each: opaque to clients, within a generation in the
/// order of their text, and never `-1` or `now`.
package enum StreamPosition: Equatable, Sendable {
    case start
    /// Behind all that is there when the request is answered.
    case end
    /// Digits alone are counted in whichever generation there is.
    case at(Int, of: StreamID?)

    private static let digits = 16

    /// Nil where the text is none that a client can have been given.
    package init?(_ text: String) {
        switch text {
        case "-1": self = .start
        case "now": self = .end
        default:
            let parts = text.split(separator: "_", omittingEmptySubsequences: false)
            guard parts.count <= 2, parts.allSatisfy({ $0.utf8.count == Self.digits }), let count = parts.last,
                count.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let offset = Int(count)
            else { return nil }
            let generation = parts.count == 2 ? StreamID(parts[0]) : nil
            guard parts.count == 1 || generation != nil else { return nil }
            self = .at(offset, of: generation)
        }
    }

    package static func text(_ offset: Int, of generation: StreamID) -> String {
        padded(generation.text) + "_" + padded(String(offset))
    }

    private static func padded(_ digits: String) -> String {
        String(repeating: "0", count: max(0, Self.digits - digits.utf8.count)) + digits
    }

    /// Where a reader begins; the start is the earliest offset that is kept.
    ///
    /// - Returns: nil for an offset of another generation than this one.
    package func offset(in snapshot: StreamSnapshot) -> Int? {
        switch self {
        case .start: snapshot.start
        case .end: snapshot.end
        case .at(let offset, let generation): generation == nil || generation == snapshot.id ? offset : nil
        }
    }
}
