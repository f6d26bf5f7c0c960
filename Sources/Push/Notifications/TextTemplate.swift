/// A text with places for variables: `{sender_name}: {preview}`. `{{` and `}}` stand for a brace each.
///
/// Values are put in as they are: braces in them mean nothing.
package struct TextTemplate: Sendable, Equatable {
    enum Piece: Sendable, Equatable {
        case text(String)
        case variable(String)
    }

    let pieces: [Piece]

    /// The variables that the template names.
    package var names: Set<String> {
        Set(
            pieces.compactMap { piece in
                if case .variable(let name) = piece { name } else { nil }
            })
    }

    /// - Parameter known: the only names that may be used; nil where any may.
    package init(_ source: String, known: Set<String>? = nil) throws(TemplateError) {
        var pieces: [Piece] = []
        var plain = ""
        var at = source.startIndex
        func place(_ index: String.Index) -> String {
            "character \(source.distance(from: source.startIndex, to: index) + 1)"
        }
        while at < source.endIndex {
            let character = source[at]
            let next = source.index(after: at)
            if character == "{" || character == "}", next < source.endIndex, source[next] == character {
                plain.append(character)
                at = source.index(after: next)
            } else if character == "}" {
                throw TemplateError(place: place(at), problem: "a } without a {; write }} for a brace")
            } else if character == "{" {
                guard let end = source[next...].firstIndex(of: "}") else {
                    throw TemplateError(place: place(at), problem: "a { without a }; write {{ for a brace")
                }
                let name = String(source[next..<end])
                if let problem = Self.problem(withName: name, known) {
                    throw TemplateError(place: place(at), problem: problem)
                }
                if !plain.isEmpty { pieces.append(.text(plain)) }
                plain = ""
                pieces.append(.variable(name))
                at = source.index(after: end)
            } else {
                plain.append(character)
                at = next
            }
        }
        if !plain.isEmpty { pieces.append(.text(plain)) }
        self.pieces = pieces
    }

    private static func problem(withName name: String, _ known: Set<String>?) -> String? {
        let isName = !name.isEmpty && name.utf8.allSatisfy { $0 | 0x20 &- 0x61 < 26 || $0 &- 0x30 < 10 || $0 == 0x5F }
        guard isName else {
            return "{\(name)} is no variable; a name has letters, digits and underscores, and {{ stands for a brace"
        }
        guard let known, !known.contains(name) else { return nil }
        return "there is no variable {\(name)}; there are \(known.sorted().joined(separator: ", "))"
    }

    package func text(_ variables: TemplateVariables) -> String {
        pieces.reduce(into: "") { text, piece in
            switch piece {
            case .text(let plain): text += plain
            case .variable(let name): text += variables.text(name)
            }
        }
    }
}

/// What is wrong with a template, and where.
package struct TemplateError: Error, Equatable, CustomStringConvertible {
    /// Where the template is wrong, such as `character 12` or `the value of "sender", character 3`.
    package let place: String
    /// One sentence that says what to write instead.
    package let problem: String

    package var description: String { "\(place): \(problem)" }

    func inside(_ outer: String) -> TemplateError { TemplateError(place: "\(outer), \(place)", problem: problem) }
}
