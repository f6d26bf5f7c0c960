extension RoostConfiguration {
    /// The effective values as YAML for a terminal of 80 columns, each with its origin; secrets are masked.
    package func printed() -> String {
        var out = ""
        var section: Substring?
        for value in values {
            if let next = value.setting.section, next != section { out += "\(next):\n" }
            section = value.setting.section
            for line in value.lines { out += line + "\n" }
        }
        return out
    }
}

extension Setting {
    /// `http` of `http.port`; nil for a key at the top.
    fileprivate var section: Substring? {
        key.firstIndex(of: ".").map { key[..<$0] }
    }
}

extension EffectiveValue {
    private static let width = 80
    /// The column of comments, unless a value is too long.
    private static let margin = 44

    /// `name: value  # origin`, or the value on lines of its own if that is too wide.
    fileprivate var lines: [String] {
        let indent = setting.section == nil ? "" : "  "
        let name = "\(indent)\(setting.key.split(separator: ".").last ?? ""):"
        let comment = "  # " + (value == nil ? "not set" : "\(origin)")
        let line = "\(name) \(yaml)"
        let padding = String(repeating: " ", count: max(0, Self.margin - line.count))
        if line.count + padding.count + comment.count <= Self.width { return [line + padding + comment] }
        if line.count + comment.count <= Self.width { return [line + comment] }
        let inner = indent + "  "
        return [name + comment] + folded(to: Self.width - inner.count).map { inner + $0 }
    }

    /// A quoted text over several lines. A backslash at the end of a line joins it to the next, whose indentation is
    /// ignored (YAML 1.2, 7.3.1).
    private func folded(to width: Int) -> [String] {
        var lines: [String] = []
        var rest = yaml.hasPrefix("\"") ? yaml[...] : "\"\(yaml)\""
        while rest.count > width {
            let most = rest.index(rest.startIndex, offsetBy: width - 1)
            var end = rest[..<most].lastIndex(of: " ").map(rest.index(after:)) ?? most
            // Never split an escape, and never begin a line with a space, which would be ignored.
            while end < rest.endIndex, rest[..<end].last == "\\" || rest[end] == " " { end = rest.index(before: end) }
            guard end > rest.startIndex else { break }
            lines.append(rest[..<end] + "\\")
            rest = rest[end...]
        }
        return lines + [String(rest)]
    }

    private var yaml: String {
        guard case .text = value else { return printed }
        let isPlain = printed.allSatisfy { $0.isLetter || $0.isNumber || "-_./:@".contains($0) } && !printed.isEmpty
        return isPlain ? printed : "\"" + Self.escapes.reduce(printed) { $0.replacing($1.0, with: $1.1) } + "\""
    }

    private static let escapes = [("\\", "\\\\"), ("\"", "\\\""), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")]
}

/// Removes passwords from printed values. If the extent of a password is unclear, more is hidden.
package enum Mask {
    /// The replacement for a secret.
    package static let hidden = "***"

    /// A connection string, as a URL or as `key=value` words, without its passwords.
    package static func connection(_ text: String) -> String {
        maskParameters(maskUserInfo(text))
    }

    /// A URL without its password and its query, which may contain a key.
    package static func url(_ text: String) -> String {
        let masked = maskUserInfo(text)
        guard let mark = masked.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return masked }
        return masked[...mark] + hidden
    }

    /// `scheme://user:password@host`: masks the text between the colon and the last `@`.
    private static func maskUserInfo(_ text: String) -> String {
        guard let scheme = text.firstRange(of: "://") else { return text }
        let rest = text[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        // A password with a slash in it is malformed, yet must not be shown.
        guard let at = authority.lastIndex(of: "@") ?? rest.lastIndex(of: "@"),
            let colon = rest[..<at].firstIndex(of: ":")
        else { return text }
        return text[...colon] + hidden + text[at...]
    }

    /// Masks `password=…` and `sslpassword=…`, quoted or not, and possible misspellings of them.
    private static func maskParameters(_ text: String) -> String {
        var out = ""
        var rest = text[...]
        while let word = rest.firstRange(of: "pass") {
            let name = rest[word.upperBound...].firstIndex { !$0.isLetter } ?? rest.endIndex
            out += rest[..<name]
            rest = rest[name...]
            let spaces = rest.prefix { $0 == " " }
            guard rest[spaces.endIndex...].first == "=" else { continue }
            let value = rest[spaces.endIndex...].dropFirst().drop { $0 == " " }
            out += rest[..<value.startIndex] + hidden
            rest = value[valueEnd(of: value)...]
        }
        return out + rest
    }

    /// Following words without an equals sign belong to the value: its quotes were probably forgotten.
    private static func endOfPlain(_ value: Substring) -> Substring.Index {
        var rest = value
        while let stop = rest.firstIndex(where: { $0 == " " || $0 == "&" }) {
            let next = value[value.index(after: stop)...].drop { $0 == " " }
            if value[stop] == "&" || next.prefix(while: { $0 != " " }).contains("=") { return stop }
            rest = next
        }
        return value.endIndex
    }

    private static func valueEnd(of value: Substring) -> Substring.Index {
        guard value.first == "'" else { return endOfPlain(value) }
        var index = value.index(after: value.startIndex)
        while index < value.endIndex, value[index] != "'" {
            if value[index] == "\\" { index = value.index(after: index) }
            if index < value.endIndex { index = value.index(after: index) }
        }
        return index < value.endIndex ? value.index(after: index) : index
    }
}
