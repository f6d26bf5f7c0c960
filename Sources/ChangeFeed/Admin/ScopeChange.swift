/// What `roost watch` is to do with a table's scope.
package enum ScopeChange: Sendable, Equatable {
    case keep
    case remove
    /// - Parameters:
    ///   - column: as SQL writes it.
    ///   - members: tables, as `regclass` reads them.
    case declare(column: String, members: [String])

    /// The names in lists that separate them by commas; a comma between double quotes belongs to a name.
    package static func names(in lists: [String]) -> [String] {
        lists.flatMap { list in
            var isQuoted = false
            return list.split { character in
                if character == "\"" { isQuoted.toggle() }
                return character == "," && !isQuoted
            }.map { String($0.trimming(while: { $0 == " " })) }.filter { !$0.isEmpty }
        }
    }
}

extension Substring {
    fileprivate func trimming(while isBlank: (Character) -> Bool) -> Substring {
        var rest = drop(while: isBlank)
        while let last = rest.last, isBlank(last) { rest.removeLast() }
        return rest
    }
}

/// The scope of a table that was watched.
package struct ScopeOutcome: Sendable, Equatable {
    package let column: String
    /// Schemas and names, separated by commas.
    package let members: String
    /// Without row level security the scope changes nothing.
    package let hasRowSecurity: Bool
    /// Why the hub does not use it, clauses without full stops.
    package let problems: [String]

    init(_ scope: DeclaredScope) {
        column = scope.column
        members = scope.memberNames
        hasRowSecurity = scope.hasRowSecurity
        problems = scope.problems.map(\.text)
    }
}
