/// Where each key of a YAML file stands. The parser tells values and not places, so this looks for itself.
///
/// It knows what configuration files are written with: keys in blocks, one in a line. What it does not find (a mapping
/// in braces) is named without a line, and nothing else depends on it.
struct KeyLines {
    /// By key, with dots between the levels; lines are counted from 1.
    private var lines: [String: [Int]] = [:]
    /// The first line that is indented with a tab.
    private(set) var tab: Int?

    init(_ text: String) {
        var levels: [(indent: Int, name: String)] = []
        /// A text of several lines (`key: |`) goes on as long as lines are indented more than its key.
        var blockIndent: Int?
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let content = line.drop { $0 == " " }
            guard let first = content.first, first != "#" else { continue }
            let indent = line.count - content.count
            if let block = blockIndent {
                if indent > block { continue }
                blockIndent = nil
            }
            if first == "\t", content.contains(where: { !$0.isWhitespace }) { tab = tab ?? index + 1 }
            guard let (name, value) = Self.pair(content) else { continue }
            levels.removeAll { $0.indent >= indent }
            levels.append((indent, name))
            lines[levels.map(\.name).joined(separator: "."), default: []].append(index + 1)
            if let mark = value.first, mark == "|" || mark == ">" { blockIndent = indent }
        }
    }

    /// Where the key was set first.
    subscript(_ key: String) -> Int? { lines[key]?.first }

    func all(_ key: String) -> [Int] { lines[key] ?? [] }

    /// A key that stands twice, the first of them.
    var repeated: String? {
        lines.filter { $0.value.count > 1 }.min { $0.value[1] < $1.value[1] }?.key
    }

    /// `key: value`; a key may be quoted.
    private static func pair(_ content: Substring) -> (name: String, value: Substring)? {
        guard let quote = content.first, quote == "\"" || quote == "'" else {
            guard let colon = content.firstIndex(of: ":") else { return nil }
            return after(colon, in: content).map { (content[..<colon].trimmed, $0) }
        }
        let rest = content.dropFirst()
        guard let end = rest.firstIndex(of: quote) else { return nil }
        guard let colon = rest[end...].dropFirst().firstIndex(where: { $0 != " " }), rest[colon] == ":" else {
            return nil
        }
        return after(colon, in: content).map { (String(rest[..<end]), $0) }
    }

    /// What follows a colon that ends a key: nothing, or a space and a value.
    private static func after(_ colon: Substring.Index, in content: Substring) -> Substring? {
        let value = content[content.index(after: colon)...]
        guard value.isEmpty || value.first?.isWhitespace == true else { return nil }
        return value.drop(while: \.isWhitespace)
    }
}

extension Substring {
    fileprivate var trimmed: String {
        let end = lastIndex { !$0.isWhitespace }.map { index(after: $0) } ?? startIndex
        return String(self[..<end])
    }
}
