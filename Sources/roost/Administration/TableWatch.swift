import ChangeFeed

/// `roost watch` and `roost unwatch`.
struct TableWatch {
    let url: String

    func watch(table: String, scope: ScopeChange) throws {
        let outcome = try RunFailure.wrapping { try Watcher.watch(table, scope: scope, conninfo: url) }
        for member in outcome.members { report(member, verb: "watched") }
        report(outcome, verb: "watched")
    }

    func watch(publication: String) throws {
        for outcome in try RunFailure.wrapping({ try Watcher.watch(publication: publication, conninfo: url) }) {
            report(outcome, verb: "watched")
        }
    }

    func unwatch(table: String) throws {
        report(try RunFailure.wrapping { try Watcher.unwatch(table, conninfo: url) }, verb: "not watched")
    }

    private func report(_ outcome: Watcher.Outcome, verb: String) {
        let again = outcome.changed.isEmpty ? "already" : "now"
        let visibility = outcome.scope.map { "; \($0.sentence)" } ?? "."
        StandardOutput.line("\(outcome.table) is \(verb) \(again)\(visibility)")
    }
}

extension ScopeOutcome {
    /// What the scope promises and what it does not, with a full stop.
    fileprivate var sentence: String {
        if !problems.isEmpty {
            return "its scope \(column) is not used, as \(problems.joined(separator: "; "))."
        }
        if !hasRowSecurity {
            return "its scope \(column) changes nothing until it has row level security, as everybody sees every row."
        }
        let rest = members.isEmpty ? "the table itself" : members
        return "visibility by \(column), as long as \(rest) \(rest.contains(", ") ? "do" : "does") not change."
    }
}
