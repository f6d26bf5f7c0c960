/// The parsed form of an expression or a query, as Postgres keeps it in its catalog (`pg_node_tree`, written by
/// nodes/outfuncs.c and parsed in the same way as nodes/read.c does).
///
/// Names and types are already resolved in it, so nothing has to be looked up or guessed that a text would leave open.
package indirect enum NodeTree: Equatable {
    /// A word as written; `<>` is null.
    case word(String)
    case list([NodeTree])
    case node(Fields)

    package struct Fields: Equatable {
        /// `VAR`, `OPEXPR`, `QUERY` and so on.
        let label: String
        /// By name, without the colon; a constant's value is several words.
        let values: [String: [NodeTree]]

        subscript(_ name: String) -> NodeTree? { values[name]?.first }

        func number(_ name: String) -> Int? { self[name]?.word.flatMap { Int($0) } }

        func oid(_ name: String) -> UInt32? { self[name]?.word.flatMap { UInt32($0) } }

        func isTrue(_ name: String) -> Bool { self[name]?.word == "true" }

        /// The elements of a list; none for null.
        func list(_ name: String) -> [NodeTree] { self[name]?.elements ?? [] }

        /// True if the field is null, or missing in this version.
        func isEmpty(_ name: String) -> Bool { self[name].map { $0 == .word("<>") } ?? true }
    }

    /// - Returns: nil for a text of another form.
    package init?(_ text: String) {
        var parser = NodeTreeParser(text)
        guard let tree = parser.parseValue(), parser.isAtEnd else { return nil }
        self = tree
    }

    var word: String? { if case .word(let word) = self { word } else { nil } }

    var elements: [NodeTree]? { if case .list(let elements) = self { elements } else { nil } }

    func node(_ label: String) -> Fields? {
        guard case .node(let fields) = self, fields.label == label else { return nil }
        return fields
    }

    /// All its parts, one level down.
    var parts: [NodeTree] {
        switch self {
        case .word: []
        case .list(let elements): elements
        case .node(let fields): fields.values.values.flatMap { $0 }
        }
    }
}

private struct NodeTreeParser {
    private let words: [String]
    private var at = 0
    /// Deeper than any handwritten policy.
    private static let deepest = 500
    private var depth = 0

    init(_ text: String) {
        var words: [String] = []
        var word: [UInt8] = []
        var isEscaped = false
        func endWord() {
            if !word.isEmpty { words.append(String(decoding: word, as: UTF8.self)) }
            word = []
        }
        for byte in text.utf8 {
            if isEscaped {
                word.append(byte)
                isEscaped = false
                continue
            }
            switch byte {
            case UInt8(ascii: "\\"):
                word.append(byte)
                isEscaped = true
            case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\t"): endWord()
            case UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: "{"), UInt8(ascii: "}"):
                endWord()
                words.append(String(UnicodeScalar(byte)))
            default: word.append(byte)
            }
        }
        endWord()
        self.words = words
    }

    var isAtEnd: Bool { at == words.count }

    mutating func parseValue() -> NodeTree? {
        guard at < words.count, depth < Self.deepest else { return nil }
        depth += 1
        defer { depth -= 1 }
        let word = words[at]
        at += 1
        switch word {
        case "(": return parseList()
        case "{": return parseNode()
        case ")", "}": return nil
        default: return .word(word)
        }
    }

    private mutating func parseList() -> NodeTree? {
        var elements: [NodeTree] = []
        while at < words.count, words[at] != ")" {
            guard let element = parseValue() else { return nil }
            elements.append(element)
        }
        guard at < words.count else { return nil }
        at += 1
        return .list(elements)
    }

    private mutating func parseNode() -> NodeTree? {
        guard at < words.count else { return nil }
        let label = words[at]
        at += 1
        var values: [String: [NodeTree]] = [:]
        var field: String?
        while at < words.count, words[at] != "}" {
            if words[at].hasPrefix(":") {
                let name = String(words[at].dropFirst())
                // A field that occurs twice may be a name that looks like one.
                guard values[name] == nil else { return nil }
                values[name] = []
                field = name
                at += 1
                continue
            }
            guard let field, let value = parseValue() else { return nil }
            values[field, default: []].append(value)
        }
        guard at < words.count else { return nil }
        at += 1
        return .node(NodeTree.Fields(label: label, values: values))
    }
}
