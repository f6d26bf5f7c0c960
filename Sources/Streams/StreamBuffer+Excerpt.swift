import Wire

extension StreamBuffer {
    /// The newest content for an operator to read: the end of a text, the last messages of JSON, nothing of binary
    /// content. It is short, and tokens are hidden as in `Excerpt`.
    ///
    /// If the excerpt begins within a token, the token's end would pass for a word: so bytes that may belong to a token are left out there.
    package func makeExcerpt() -> [String] {
        let snapshot = snapshot
        let end = snapshot.end
        let start = max(snapshot.start, end - Self.looked)
        var bytes: [UInt8] = []
        switch configuration.content {
        case .binary: return []
        case .text:
            copyBytes(start..<end, into: &bytes)
            let isWithinCharacter = bytes.first.map { $0 & 0xC0 == 0x80 } ?? false
            let rest =
                start == 0
                ? bytes[...] : bytes.drop { isWithinCharacter ? $0 & 0xC0 == 0x80 : Excerpt.isTokenByte($0) }
            let text = Excerpt.redacted(String(decoding: rest, as: UTF8.self))
            let shown = text.suffix(Self.shown)
            guard !shown.isEmpty else { return [] }
            return [start > 0 || shown.count < text.count ? "…" + shown : String(shown)]
        case .json:
            copyBytes(start..<end, into: &bytes)
            var lines = bytes.split(separator: UInt8(ascii: "\n"))
            // The first line may be the end of a message.
            if start > 0, !lines.isEmpty { lines.removeFirst() }
            return lines.suffix(Self.messages).map { FrameHead.excerpt(ofJSON: $0) }
        }
    }

    /// The bytes examined, the characters shown of text, and the messages shown of JSON.
    private static let (looked, shown, messages) = (4096, 200, 5)
}
