/// The cost to Postgres of a client's regular expression, read from its text before Postgres sees it.
///
/// Postgres' engine (Spencer's; documentation, section 9.7.3) decides most expressions in one pass over the text. Two
/// features break that and are refused: back-references, which take exponential time to match, and lookahead and
/// lookbehind, which read the rest of the text again at every character (64 KiB: 9 s). Other expressions cost time to
/// compile, which grows with their size once repetitions are written out, and with the square of their optional parts.
///
/// The parser reads the text as `regc_lex.c` does, and refuses whatever would change the flavour (`***=`, `(?i)`), so that
/// the two never read an expression differently. It does not look for errors: Postgres reports those when the filter is
/// validated.
package struct RegularExpression {
    /// Atoms once repetitions are written out.
    package private(set) var size = 0
    /// Atoms and groups that are optional or repeat without limit, written out.
    package private(set) var optional = 0
    /// `^`, `$`, `\y` and their kin, written out: no state is kept past one, so every character is examined again.
    package private(set) var constraints = 0
    /// Sets of characters, written out. Each has an arc for every kind of character that the expression distinguishes.
    package private(set) var sets = 0

    package enum Limits {
        package static let bytes = 512
        package static let depth = 10
        package static let size = 500
        package static let optional = 40
        package static let constraints = 8
        /// Sets times kinds of characters.
        package static let arcs = 2_500
        /// Ranges between characters beyond ASCII: under `imatch` each character of a range is looked up.
        package static let wideRanges = 4
    }

    /// The fault, as the end of a sentence that begins with the pattern.
    package struct Fault: Error, Equatable {
        package let reason: String
    }

    /// - Throws: `Fault` if the pattern must not be sent to Postgres.
    package init(_ pattern: String) throws(Fault) {
        guard pattern.utf8.count <= Limits.bytes else {
            throw Fault(reason: "is longer than \(Limits.bytes) bytes")
        }
        var parser = RegularExpressionParser(pattern)
        let cost = try parser.parseExpression()
        size = cost.size
        optional = cost.optional
        constraints = cost.constraints
        sets = cost.sets
        let kinds = parser.kinds
        guard cost.size <= Limits.size, cost.sets * kinds <= Limits.arcs else {
            throw Fault(reason: "is too large once its repetitions are written out; repeat less, or shorter parts")
        }
        guard cost.optional <= Limits.optional else {
            throw Fault(
                reason:
                    "has more than \(Limits.optional) parts that may be left out or repeated (*, +, ?, {m,n}), counted "
                    + "once repetitions are written out")
        }
        guard cost.constraints <= Limits.constraints else {
            throw Fault(
                reason: "has more than \(Limits.constraints) anchors and word boundaries (^, $, \\y), counted once "
                    + "repetitions are written out")
        }
    }
}

/// The size of a part of an expression; additions saturate, far above every limit.
private struct ExpressionCost {
    var size = 0
    var optional = 0
    var constraints = 0
    var sets = 0

    static let atom = ExpressionCost(size: 1)
    static let set = ExpressionCost(size: 1, sets: 1)
    static let constraint = ExpressionCost(size: 1, constraints: 1)
    private static let most = 1_000_000

    static func + (one: ExpressionCost, other: ExpressionCost) -> ExpressionCost {
        ExpressionCost(
            size: min(one.size + other.size, most), optional: min(one.optional + other.optional, most),
            constraints: min(one.constraints + other.constraints, most), sets: min(one.sets + other.sets, most))
    }

    func repeated(_ times: Int) -> ExpressionCost {
        ExpressionCost(
            size: min(size * times, Self.most), optional: min(optional * times, Self.most),
            constraints: min(constraints * times, Self.most), sets: min(sets * times, Self.most))
    }
}

/// Parses an expression by recursive descent, no deeper than `Limits.depth`.
private struct RegularExpressionParser {
    typealias Fault = RegularExpression.Fault
    typealias Limits = RegularExpression.Limits

    private let text: [Unicode.Scalar]
    private var at = 0
    private var literals: Set<Unicode.Scalar> = []
    private var distinctSets = 0
    private var wideRanges = 0

    init(_ pattern: String) {
        text = Array(pattern.unicodeScalars)
    }

    /// Upper bound of the kinds of characters that the expression can distinguish.
    var kinds: Int { literals.count + 2 * distinctSets + 1 }

    mutating func parseExpression() throws(Fault) -> ExpressionCost {
        if starts(with: "***") { throw Fault(reason: "begins with ***, which is not served; write it without") }
        let cost = try parseAlternatives(depth: 0)
        guard at == text.count else { throw Fault(reason: "has a ) without its (") }
        return cost
    }

    private mutating func parseAlternatives(depth: Int) throws(Fault) -> ExpressionCost {
        guard depth <= Limits.depth else {
            throw Fault(reason: "has parentheses within parentheses, more than \(Limits.depth) deep")
        }
        var cost = ExpressionCost()
        while true {
            let branch = try self.parseBranch(depth: depth)
            // An empty branch makes the whole optional.
            cost = cost + branch + ExpressionCost(size: 1, optional: branch.size == 0 ? 1 : 0)
            guard at < text.count, text[at] == "|" else { return cost }
            at += 1
        }
    }

    private mutating func parseBranch(depth: Int) throws(Fault) -> ExpressionCost {
        var cost = ExpressionCost()
        while at < text.count, text[at] != "|", text[at] != ")" {
            let atom = try self.parseAtom(depth: depth)
            cost = cost + (try parseQuantifiers(atom))
        }
        return cost
    }

    private mutating func parseAtom(depth: Int) throws(Fault) -> ExpressionCost {
        let character = text[at]
        at += 1
        switch character {
        case "(": return try parseGroup(depth: depth)
        case "[": return try parseBracket()
        case "\\": return try parseEscape()
        case ".": return countSet()
        case "^", "$": return .constraint
        default:
            literals.insert(character)
            return .atom
        }
    }

    /// Parses the text after a `(`.
    private mutating func parseGroup(depth: Int) throws(Fault) -> ExpressionCost {
        if at < text.count, text[at] == "?" {
            guard at + 1 < text.count, text[at + 1] == ":" else {
                throw Fault(
                    reason: "has lookahead, lookbehind, an option or a comment ((?…), which are not served; of these "
                        + "only (?:…) is")
            }
            at += 2
        }
        let cost = try parseAlternatives(depth: depth + 1)
        guard at < text.count else { throw Fault(reason: "has a ( without its )") }
        at += 1
        return cost
    }

    // MARK: Repetition

    private mutating func parseQuantifiers(_ atom: ExpressionCost) throws(Fault) -> ExpressionCost {
        var cost = atom
        // Two in a row are a syntax error in Postgres, and harmless here.
        while at < text.count {
            switch text[at] {
            case "*", "+", "?":
                at += 1
                cost = cost + ExpressionCost(optional: 1)
            case "{" where at + 1 < text.count && Self.isDigit(text[at + 1]):
                at += 1
                cost = try parseBounds(cost)
            default: return cost
            }
        }
        return cost
    }

    /// Parses `{m}`, `{m,}` and `{m,n}`, after the opening brace.
    private mutating func parseBounds(_ atom: ExpressionCost) throws(Fault) -> ExpressionCost {
        let least = parseNumber()
        var most: Int? = least
        if at < text.count, text[at] == "," {
            at += 1
            most = at < text.count && Self.isDigit(text[at]) ? parseNumber() : nil
        }
        guard at < text.count, text[at] == "}" else { throw Fault(reason: "has a repetition without its }") }
        at += 1
        // Postgres' own limit (DUPMAX in regguts.h).
        guard least <= 255, most ?? 0 <= 255 else { throw Fault(reason: "repeats more than 255 times") }
        let times = max(least, most ?? least, 1)
        let optional = most.map { max(0, $0 - least) } ?? 1
        return atom.repeated(times) + ExpressionCost(optional: optional)
    }

    private mutating func parseNumber() -> Int {
        var value = 0
        while at < text.count, Self.isDigit(text[at]) {
            value = min(value * 10 + Int(text[at].value - 0x30), 1_000_000)
            at += 1
        }
        return value
    }

    private static func isDigit(_ character: Unicode.Scalar) -> Bool {
        ("0"..."9").contains(character)
    }

    // MARK: Escapes and sets

    private mutating func countSet() -> ExpressionCost {
        distinctSets += 1
        return .set
    }

    /// Parses the text after a backslash.
    private mutating func parseEscape() throws(Fault) -> ExpressionCost {
        guard at < text.count else { throw Fault(reason: "ends in a lone backslash") }
        let character = text[at]
        at += 1
        switch character {
        case "1"..."9":
            throw Fault(
                reason: "has a back-reference (\\\(character)), which are not served: they can take Postgres for ever")
        case "d", "D", "s", "S", "w", "W": return countSet()
        case "A", "Z", "m", "M", "y", "Y": return .constraint
        case "c":
            // The next character belongs to the escape, whichever it is.
            guard at < text.count else { throw Fault(reason: "ends within an escape (\\c)") }
            at += 1
            return .atom
        case "a", "b", "B", "e", "f", "n", "r", "t", "v", "u", "U", "x", "0": return .atom
        case "a"..."z", "A"..."Z":
            throw Fault(reason: "has an escape that Postgres does not know (\\\(character))")
        default:
            literals.insert(character)
            return .atom
        }
    }

    /// Parses the text after a `[`.
    private mutating func parseBracket() throws(Fault) -> ExpressionCost {
        for boundary in ["[:<:]]", "[:>:]]"] where starts(with: boundary) {
            at += boundary.unicodeScalars.count
            return .constraint
        }
        var ranges = 0
        var isWide = false
        var isFirst = true
        if at < text.count, text[at] == "^" { at += 1 }
        distinctSets += 1
        while at < text.count {
            let character = text[at]
            at += 1
            defer { isFirst = false }
            switch character {
            case "]" where !isFirst:
                if isWide { wideRanges += ranges }
                guard wideRanges <= Limits.wideRanges else {
                    throw Fault(reason: "has more than \(Limits.wideRanges) ranges of characters beyond ASCII")
                }
                return .set
            case "[": try parseNamed(&isWide)
            case "\\": try escapeWithin(&isWide)
            case "-": ranges += 1
            default:
                if !character.isASCII { isWide = true }
                literals.insert(character)
            }
        }
        throw Fault(reason: "has a [ without its ]")
    }

    /// Parses the text after a `[` within brackets.
    private mutating func parseNamed(_ isWide: inout Bool) throws(Fault) {
        guard at < text.count else { return }
        switch text[at] {
        case ".", "=": throw Fault(reason: "has a collating element ([.….] or [=…=]), which are not served")
        case ":":
            at += 1
            distinctSets += 1
            while at < text.count, !starts(with: ":]") { at += 1 }
            at += 2
        default: literals.insert("[")
        }
    }

    private mutating func escapeWithin(_ isWide: inout Bool) throws(Fault) {
        guard at < text.count else { throw Fault(reason: "ends in a lone backslash") }
        if ["u", "U", "x", "0"].contains(text[at]) { isWide = true }
        _ = try parseEscape()
    }

    private func starts(with prefix: String) -> Bool {
        text[min(at, text.count)...].starts(with: prefix.unicodeScalars)
    }
}
