package import Streams

/// A reader's starting point, from the query's `offset` (Durable Streams, offsets).
///
/// An offset consists of the generation and a count of bytes, in sixteen digits each: opaque to clients, ordered by its
/// text within a generation, and never `-1` or `now`.
package enum StreamPosition: Equatable, Sendable {
    case start
    /// After everything available when the request is answered.
    case end
    /// Digits alone count in the current generation.
    case at(Int, of: StreamID?)

    private static let digits = 16

    /// Nil if no client can have been given this text.
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

    package static func offsetText(_ offset: Int, of generation: StreamID) -> String {
        padDigits(generation.text) + "_" + padDigits(String(offset))
    }

    private static func padDigits(_ digits: String) -> String {
        String(repeating: "0", count: max(0, Self.digits - digits.utf8.count)) + digits
    }

    /// The starting offset in a stream; the start is the earliest offset kept.
    ///
    /// - Returns: nil for an offset of another generation.
    package func offset(in snapshot: StreamSnapshot) -> Int? {
        switch self {
        case .start: snapshot.start
        case .end: snapshot.end
        case .at(let offset, let generation): generation == nil || generation == snapshot.id ? offset : nil
        }
    }
}
