/// The pattern of a LIKE: `%` stands for any text, `_` for one character, a backslash takes the next character
/// literally.
struct LikePattern: Hashable, Sendable {
    private enum Token: Hashable {
        case byte(UInt8)
        case anyCharacter
        case anyText
    }

    private let tokens: [Token]

    /// nil if the pattern ends in a lone backslash, which Postgres refuses when it meets it.
    init?(_ pattern: String) {
        var tokens: [Token] = []
        var isEscaped = false
        for byte in pattern.utf8 {
            switch byte {
            case UInt8(ascii: "\\") where !isEscaped:
                isEscaped = true
                continue
            case UInt8(ascii: "%") where !isEscaped:
                if tokens.last != .anyText { tokens.append(.anyText) }
            case UInt8(ascii: "_") where !isEscaped: tokens.append(.anyCharacter)
            default: tokens.append(.byte(byte))
            }
            isEscaped = false
        }
        guard !isEscaped else { return nil }
        self.tokens = tokens
    }

    /// What matching may cost here: about 1 ms. A pattern such as `%aaaa…b` compares every character of a text of the same
    /// letters with nearly all of itself.
    private static let mostSteps = 500_000

    /// Characters are code points, as Postgres has it.
    ///
    /// - Returns: nil where it takes too many steps; then Postgres is asked, which can be stopped.
    func matches(_ text: [UInt8]) -> Bool? {
        var steps = 0
        var at = 0
        var token = 0
        // Where to go on when the text behind the last % turns out not to fit: that % takes one character more.
        var retry: (at: Int, token: Int)?
        while at < text.count {
            steps += 1
            guard steps <= Self.mostSteps else { return nil }
            if token < tokens.count {
                switch tokens[token] {
                case .anyText:
                    retry = (at, token + 1)
                    token += 1
                    continue
                case .anyCharacter:
                    at = Self.next(text, at)
                    token += 1
                    continue
                case .byte(let byte) where byte == text[at]:
                    at += 1
                    token += 1
                    continue
                case .byte: break
                }
            }
            guard let (start, behind) = retry else { return false }
            at = Self.next(text, start)
            token = behind
            retry = (at, behind)
        }
        return tokens[token...].allSatisfy { $0 == .anyText }
    }

    private static func next(_ text: [UInt8], _ at: Int) -> Int {
        var at = at + 1
        while at < text.count, text[at] & 0xC0 == 0x80 { at += 1 }
        return at
    }
}
