/// The pattern of a LIKE: `%` stands for any text, `_` for one character, and a backslash makes the next character literal.
struct LikePattern: Hashable, Sendable {
    private enum Token: Hashable {
        case byte(UInt8)
        case anyCharacter
        case anyText
    }

    private let tokens: [Token]

    /// Nil if the pattern ends in a lone backslash, which Postgres refuses when a match reaches it.
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

    /// Limit of matching here: about 1 ms. A pattern such as `%aaaa…b` compares every character of a text of equal letters
    /// with nearly all of the text.
    private static let mostSteps = 500_000

    /// Matches by code points, as Postgres does.
    ///
    /// - Returns: nil if a match would take too many steps; then Postgres decides, in a statement that can be cancelled.
    func matches(_ text: [UInt8]) -> Bool? {
        var steps = 0
        var at = 0
        var token = 0
        // The place to continue from if the text after the last % does not match: that % then takes one character more.
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
                    at = Self.nextCharacter(text, at)
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
            at = Self.nextCharacter(text, start)
            token = behind
            retry = (at, behind)
        }
        return tokens[token...].allSatisfy { $0 == .anyText }
    }

    private static func nextCharacter(_ text: [UInt8], _ at: Int) -> Int {
        var at = at + 1
        while at < text.count, text[at] & 0xC0 == 0x80 { at += 1 }
        return at
    }
}
