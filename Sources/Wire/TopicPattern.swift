/// A pattern for names of topics or streams, in which `*` matches any number of characters, including none: `room:*`.
package struct TopicPattern: Sendable, Equatable {
    private let pieces: [[UInt8]]

    package init(_ text: String) {
        pieces = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
    }

    /// - Parameter literals: texts that must occur in the name in this order, with anything in between: one more than
    ///   there are wildcards, so some may be empty.
    package init(literals: [String]) { pieces = literals.map { Array($0.utf8) } }

    /// - Parameter name: a topic without `realtime:`.
    package func matches(_ name: some StringProtocol) -> Bool {
        var rest = Array(name.utf8)[...]
        guard pieces.count > 1 else { return rest.elementsEqual(pieces.first ?? []) }
        guard rest.starts(with: pieces[0]) else { return false }
        rest = rest.dropFirst(pieces[0].count)
        for piece in pieces[1..<(pieces.count - 1)] where !piece.isEmpty {
            // The earliest match suffices: everything after it stays available to the following pieces.
            guard let start = rest.indices.first(where: { rest[$0...].starts(with: piece) }) else { return false }
            rest = rest[(start + piece.count)...]
        }
        let last = pieces[pieces.count - 1]
        return rest.count >= last.count && rest.suffix(last.count).elementsEqual(last)
    }
}
