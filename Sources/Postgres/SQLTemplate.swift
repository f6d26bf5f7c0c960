/// A statement with places for parts, each of them a name in braces: `where relid = {table}`. It is cut up once and put
/// together often.
///
/// What is put in is not looked at again, so that it may have braces of its own. Braces around anything but a name, such as
/// those of `'{}'` and `'{a,b}'`, stand for themselves.
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

    /// A template for what is sent often, which needs no comments.
    package init(withoutComments script: String) { self.init(Self.withoutComments(script)) }

    /// A name without a part stays as it is written.
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

    /// The lines of a script that are no comments.
    package static func withoutComments(_ script: String) -> String {
        script.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n")
    }
}
