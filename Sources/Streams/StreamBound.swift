import Wire

/// How much is kept of one stream.
package struct StreamBound: Sendable, Equatable {
    package var bytes: Int
    /// What is older goes, in place of an append that is refused: a window that moves.
    package var keepsNewest = false
    /// Of a window: milliseconds after which what was appended may go. Nil if only its bytes count.
    package var age: Int64?

    package init(bytes: Int) { self.bytes = bytes }

    /// By how much a window may be larger than its bytes, and how much goes at once at least: to move it is to write it.
    private var slack: Int { max(Self.leastDropped, bytes / 4) }
    private static let leastDropped = 65_536

    /// Of a window whose stream cannot be cut: nothing more is taken then.
    package var most: Int { 2 * (bytes + slack) }

    /// Where a window is to begin; nil if it stays as it is.
    ///
    /// - Parameters:
    ///   - kept: offsets of what is kept now.
    ///   - old: up to where everything is older than `age`.
    package func beginning(of kept: Range<Int>, old: Int) -> Int? {
        guard keepsNewest else { return nil }
        if kept.count >= bytes + slack { return max(kept.upperBound - bytes, old) }
        return old - kept.lowerBound >= max(Self.leastDropped, kept.count / 4) ? old : nil
    }
}

/// One entry of `streams.bounds`: the bound of streams whose names fit a pattern.
package struct BoundRule: Sendable {
    package let bound: StreamBound
    private let names: TopicPattern

    package init(pattern: String, _ bound: StreamBound) {
        self.bound = bound
        names = TopicPattern(pattern)
    }

    fileprivate func applies(to name: StreamName) -> Bool { names.matches(name.text) }
}

extension [BoundRule] {
    /// The first that is for this stream.
    package func first(for name: StreamName) -> StreamBound? { first { $0.applies(to: name) }?.bound }
}
