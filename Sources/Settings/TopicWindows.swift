/// How long who is cut off counts as present, for topics of a pattern: `room:*=5/30/60`, in seconds.
package struct TopicWindows: Sendable, Equatable {
    package let pattern: String
    package let active: Int
    package let inactive: Int
    package let background: Int

    /// Nil where `text` is nothing of the kind.
    init?(_ text: String) {
        // A topic may have an equals sign in it, the windows none.
        guard let sign = text.lastIndex(of: "="), sign > text.startIndex else { return nil }
        let seconds = text[text.index(after: sign)...].split(separator: "/", omittingEmptySubsequences: false)
            .map { Int($0) ?? -1 }
        guard seconds.count == 3, seconds.allSatisfy((0...120).contains) else { return nil }
        pattern = String(text[..<sign])
        (active, inactive, background) = (seconds[0], seconds[1], seconds[2])
    }
}
