import Wire

/// The limits of what is kept of one stream.
package struct StreamBound: Sendable, Equatable {
    package var bytes: Int
    /// Older content is dropped instead of refusing an append: a moving window.
    package var keepsNewest = false
    /// For a window: milliseconds after which content may be dropped. Nil if only its bytes count.
    package var age: Int64?

    package init(bytes: Int) { self.bytes = bytes }

    /// How far a window may exceed its bytes, and the least that is dropped at once: each move rewrites the file.
    private var slack: Int { max(Self.leastDropped, bytes / 4) }
    private static let leastDropped = 65_536

    /// For a window whose stream cannot be cut: beyond this, appends are refused.
    package var most: Int { 2 * (bytes + slack) }

    /// The new beginning of a window; nil if it does not move.
    ///
    /// - Parameters:
    ///   - kept: the offsets kept now.
    ///   - old: the offset before which everything is older than `age`.
    package func beginning(of kept: Range<Int>, old: Int) -> Int? {
        guard keepsNewest else { return nil }
        if kept.count >= bytes + slack { return max(kept.upperBound - bytes, old) }
        return old - kept.lowerBound >= max(Self.leastDropped, kept.count / 4) ? old : nil
    }
}

/// One entry of `streams.bounds`: the bound for streams whose names match a pattern.
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
    /// The first bound that applies to this stream.
    package func first(for name: StreamName) -> StreamBound? { first { $0.applies(to: name) }?.bound }
}
