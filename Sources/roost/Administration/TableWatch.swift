import ChangeFeed

/// `roost watch` and `roost unwatch`.
struct TableWatch {
    let url: String

    func watch(table: String) throws {
        report(try RunFailure.wrapping { try Watcher.watch(table, conninfo: url) }, verb: "watched")
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
        StandardOutput.line("\(outcome.table) is \(verb) \(again).")
    }
}
