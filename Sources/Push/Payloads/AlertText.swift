import Wire

/// A line of an alert.
package enum AlertText: Sendable, Equatable {
    case text(String)
    /// A key in the app's `Localizable` strings; the phone puts the arguments in, in its own language.
    case localized(key: String, arguments: [String])

    func write(_ name: String, into alert: inout ObjectWriter) {
        switch self {
        case .text(let text): alert.add(name, text)
        case .localized(let key, let arguments):
            // The keys of the body have no prefix.
            let prefix = name == "body" ? "" : name + "-"
            alert.add(prefix + "loc-key", key)
            if !arguments.isEmpty { alert.add(prefix + "loc-args", arguments) }
        }
    }

    /// Takes at least that many bytes of JSON away, where it has them; of a localized line from its longest argument.
    func shortened(by excess: Int) -> AlertText {
        switch self {
        case .text(let text): return .text(Self.shortened(text, by: excess))
        case .localized(let key, var arguments):
            guard let longest = arguments.indices.max(by: { arguments[$0].utf8.count < arguments[$1].utf8.count })
            else { return self }
            arguments[longest] = Self.shortened(arguments[longest], by: excess)
            return .localized(key: key, arguments: arguments)
        }
    }

    private static func shortened(_ text: String, by excess: Int) -> String {
        let ellipsis = "…"
        var room = ObjectWriter.size(of: text) - excess - ellipsis.utf8.count
        var end = text.startIndex
        while end < text.endIndex {
            let next = text.index(after: end)
            room -= ObjectWriter.size(of: text[end..<next])
            guard room >= 0 else { break }
            end = next
        }
        while end > text.startIndex, text[text.index(before: end)].isWhitespace { end = text.index(before: end) }
        let short = text[..<end] + ellipsis
        return ObjectWriter.size(of: short) < ObjectWriter.size(of: text) ? String(short) : text
    }
}

extension ObjectWriter {
    /// The bytes of a text in JSON, its quotes aside.
    fileprivate static func size(of text: some StringProtocol) -> Int { JSONString.encode(String(text)).count - 2 }
}
