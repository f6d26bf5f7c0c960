import ChangeFeed

/// `roost watch` and `roost unwatch`.
struct TableWatch {
    let url: String
    /// Seconds.
    let wait: Int

    private var patience: LockPatience { LockPatience(total: .seconds(wait)) }

    func watch(table: String, scope: ScopeChange) throws {
        let outcome = try telling {
            try Watcher.watch(table, scope: scope, conninfo: url, patience: patience, progress: $0)
        }
        for member in outcome.members { report(member, verb: "watched") }
        report(outcome, verb: "watched")
    }

    func watch(publication: String) throws {
        let outcomes = try telling {
            try Watcher.watch(publication: publication, conninfo: url, patience: patience, progress: $0)
        }
        for outcome in outcomes { report(outcome, verb: "watched") }
    }

    func unwatch(table: String) throws {
        let outcome = try telling {
            try Watcher.unwatch(table, conninfo: url, patience: patience, progress: $0)
        }
        report(outcome, verb: "not watched")
    }

    private func telling<Outcome>(_ body: (@escaping AdminProgress.Listener) throws -> Outcome) throws -> Outcome {
        let line = ProgressLine()
        return try line.during { try RunFailure.wrapping { try body(line.show) } }
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
