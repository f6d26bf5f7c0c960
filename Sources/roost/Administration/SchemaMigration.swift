import ChangeFeed

/// `roost migrate`.
struct SchemaMigration {
    let url: String

    static func sql() -> String { Migrator.script }

    func run() throws {
        let outcome = try RunFailure.wrapping { try Migrator.migrate(conninfo: url) }
        StandardOutput.line(
            outcome.from == outcome.to
                ? "The schema roost is at version \(outcome.to) already."
                : "The schema roost is at version \(outcome.to) now (was \(outcome.from)).")
    }
}
