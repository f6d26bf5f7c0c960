/// A statement with placeholders, each a name in braces: `where relid = {table}`. It is parsed once and filled often.
///
/// Inserted parts are not parsed again, so they may contain braces. Braces around anything but a name, such as those of
/// `'{}'` and `'{a,b}'`, stand for themselves.
package struct SQLTemplate: Sendable {
    private enum Piece {
        case text(Substring)
        case part(String)
    }

    private let pieces: [Piece]

    package init(_ text: String) {
        var pieces: [Piece] = []
        var (start, rest) = (text.startIndex, text[...])
        while let open = rest.firstIndex(of: "{") {
            rest = rest[rest.index(after: open)...]
            let name = rest.prefix { $0.isASCII && $0.isLowercase }
            guard !name.isEmpty, name.endIndex < rest.endIndex, rest[name.endIndex] == "}" else { continue }
            rest = rest[rest.index(after: name.endIndex)...]
            pieces += [.text(text[start..<open]), .part(String(name))]
            start = rest.startIndex
        }
        self.pieces = pieces + [.text(text[start...])]
    }

    /// A template without the script's comments, for statements that are sent often.
    package init(withoutComments script: String) { self.init(Self.withoutComments(script)) }

    /// Fills in the parts. A placeholder without a part stays as written.
    package func filled(_ parts: [String: String]) -> String {
        var out = ""
        for piece in pieces {
            switch piece {
            case .text(let text): out += text
            case .part(let name): out += parts[name] ?? "{\(name)}"
            }
        }
        return out
    }

    /// The lines of a script that are not comments.
    package static func withoutComments(_ script: String) -> String {
        script.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n")
    }
}
