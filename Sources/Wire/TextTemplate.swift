/// A text with placeholders for variables: `{sender_name}: {preview}`. `{{` and `}}` stand for one brace each.
///
/// Values are inserted unchanged: braces in them have no meaning.
package struct TextTemplate: Sendable, Equatable {
    package enum Piece: Sendable, Equatable {
        case text(String)
        case variable(String)
    }

    package let pieces: [Piece]

    /// The variables that the template names.
    package var names: Set<String> {
        Set(
            pieces.compactMap { piece in
                if case .variable(let name) = piece { name } else { nil }
            })
    }

    /// - Parameters:
    ///   - known: the only permitted names; nil to permit any.
    ///   - hasPaths: whether names may be paths into a document, such as `record.id`.
    package init(_ source: String, known: Set<String>? = nil, hasPaths: Bool = false) throws(TemplateError) {
        var pieces: [Piece] = []
        var plain = ""
        var at = source.startIndex
        func describePlace(_ index: String.Index) -> String {
            "character \(source.distance(from: source.startIndex, to: index) + 1)"
        }
        while at < source.endIndex {
            let character = source[at]
            let next = source.index(after: at)
            if character == "{" || character == "}", next < source.endIndex, source[next] == character {
                plain.append(character)
                at = source.index(after: next)
            } else if character == "}" {
                throw TemplateError(place: describePlace(at), problem: "a } without a {; write }} for a brace")
            } else if character == "{" {
                guard let end = source[next...].firstIndex(of: "}") else {
                    throw TemplateError(place: describePlace(at), problem: "a { without a }; write {{ for a brace")
                }
                let name = String(source[next..<end])
                if let problem = Self.problem(withName: name, known, hasPaths) {
                    throw TemplateError(place: describePlace(at), problem: problem)
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

    private static func problem(withName name: String, _ known: Set<String>?, _ hasPaths: Bool) -> String? {
        let parts = hasPaths ? name.utf8.split(separator: 0x2E, omittingEmptySubsequences: false) : [name.utf8[...]]
        let areNames = parts.allSatisfy { part in
            !part.isEmpty && part.allSatisfy { $0 | 0x20 &- 0x61 < 26 || $0 &- 0x30 < 10 || $0 == 0x5F }
        }
        guard areNames else {
            return "{\(name)} is no variable; a name has letters, digits and underscores, and {{ stands for a brace"
        }
        guard let known, !known.contains(name) else { return nil }
        return "there is no variable {\(name)}; there are \(known.sorted().joined(separator: ", "))"
    }
}

/// An error in a template, and its place.
package struct TemplateError: Error, Equatable, CustomStringConvertible {
    /// The place of the error, such as `character 12` or `the value of "sender", character 3`.
    package let place: String
    /// One sentence that says what to write instead.
    package let problem: String

    package init(place: String, problem: String) {
        self.place = place
        self.problem = problem
    }

    package var description: String { "\(place): \(problem)" }

    package func inside(_ outer: String) -> TemplateError {
        TemplateError(place: "\(outer), \(place)", problem: problem)
    }
}
