package import Wire

/// How much one stream may have.
package struct StreamBound: Sendable, Equatable {
    package var bytes: Int

    package init(bytes: Int) { self.bytes = bytes }
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
