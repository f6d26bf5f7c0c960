/// Takes passwords out of what gets printed. Where it is not clear what belongs to the password, more is hidden.
package enum Mask {
    /// What stands for a secret.
    package static let hidden = "***"

    /// A connection string, as a URL or as `key=value` words, without its passwords.
    package static func connection(_ text: String) -> String {
        maskParameters(maskUserInfo(text))
    }

    /// `scheme://user:password@host`: what is between the colon and the last `@`.
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

    /// `password=…` and `sslpassword=…`, quoted or not.
    private static func maskParameters(_ text: String) -> String {
        var out = ""
        var rest = text[...]
        while let word = rest.firstRange(of: "password") {
            out += rest[..<word.upperBound]
            rest = rest[word.upperBound...]
            let spaces = rest.prefix { $0 == " " }
            guard rest[spaces.endIndex...].first == "=" else { continue }
            let value = rest[spaces.endIndex...].dropFirst().drop { $0 == " " }
            out += rest[..<value.startIndex] + hidden
            rest = value[end(of: value)...]
        }
        return out + rest
    }

    private static func end(of value: Substring) -> Substring.Index {
        guard value.first == "'" else { return value.firstIndex { $0 == " " || $0 == "&" } ?? value.endIndex }
        var index = value.index(after: value.startIndex)
        while index < value.endIndex, value[index] != "'" {
            if value[index] == "\\" { index = value.index(after: index) }
            if index < value.endIndex { index = value.index(after: index) }
        }
        return index < value.endIndex ? value.index(after: index) : index
    }
}
