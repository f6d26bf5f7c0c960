import ChangeFeed

/// `roost migrate`.
struct SchemaMigration {
    let url: String
    /// Seconds.
    let wait: Int

    static func sql() -> String { Migrator.script }

    func run() throws {
        let line = ProgressLine()
        let outcome = try line.during {
            try RunFailure.wrapping {
                try Migrator.migrate(conninfo: url, patience: LockPatience(total: .seconds(wait)), progress: line.show)
            }
        }
        StandardOutput.line(
            outcome.from == outcome.to
                ? "The schema roost is at version \(outcome.to) already."
                : "The schema roost is at version \(outcome.to) now (was \(outcome.from)).")
    }
}
