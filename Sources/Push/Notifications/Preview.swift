/// Cuts text to fit one line of a lock screen.
///
/// The cut is between graphemes (Unicode UAX #29), so that an emoji, a flag or a letter with its accents is never split.
package struct Preview: Sendable, Equatable {
    /// The maximum number of characters as a reader counts them, including the "…" of a cut text.
    package let limit: Int

    /// A character may be of any length (a letter may carry hundreds of marks); a push may not (4096 bytes).
    private var byteLimit: Int { limit * 6 }

    package init(limit: Int = 100) { self.limit = max(1, limit) }

    /// Returns the text on one line, cut to the limit: line breaks, tabs and runs of spaces become one space; other control characters
    /// are dropped.
    package func of(_ text: String) -> String {
        var line = ""
        var (count, bytes) = (0, 0)
        // The number of the line's bytes that stay if it has to make room for the "…".
        var shorter = 0
        var owesSpace = false
        for character in text {
            if character.isWhitespace {
                owesSpace = !line.isEmpty
                continue
            }
            guard !Self.isControl(character) else { continue }
            let (moreCharacters, moreBytes) = (owesSpace ? 2 : 1, character.utf8.count + (owesSpace ? 1 : 0))
            guard count + moreCharacters <= limit, bytes + moreBytes <= byteLimit else {
                return String(decoding: line.utf8.prefix(count < limit ? bytes : shorter), as: UTF8.self) + "…"
            }
            if count < limit { shorter = bytes }
            if owesSpace { line.append(" ") }
            line.append(character)
            owesSpace = false
            count += moreCharacters
            bytes += moreBytes
        }
        return line
    }

    private static func isControl(_ character: Character) -> Bool {
        character.unicodeScalars.allSatisfy { $0.properties.generalCategory == .control }
    }
}
