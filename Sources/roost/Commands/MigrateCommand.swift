import Administration
import ArgumentParser
import Settings

struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Install or upgrade Roost's schema in the database.",
        discussion: """
            Creates the schema `roost` with its outbox table and functions; your own tables are not touched before \
            `roost watch`. Safe to repeat.
            """
    )

    @Flag(name: .customLong("print"), help: "Print the SQL and run nothing.")
    var printsOnly = false

    @OptionGroup
    var patience: WaitOption

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        if printsOnly {
            print(SchemaMigration.migrationScript())
        } else {
            let url = try options.loadAndApply().requireDatabaseURL(for: "roost migrate")
            try SchemaMigration(url: url, wait: patience.wait).runMigration()
        }
    }
}

/// Brings the schema `roost` up to date, for `roost migrate`.
struct SchemaMigration {
    let url: String
    /// The time to keep trying if tables are in use, in seconds.
    let wait: Int

    static func migrationScript() -> String { Migrator.script }

    func runMigration() throws {
        let line = ProgressLine()
        let outcome = try line.during {
            try RunFailure.wrapping {
                try Migrator.migrate(
                    conninfo: url, patience: LockPatience(total: .seconds(wait)), progress: line.showProgress)
            }
        }
        StandardOutput.writeLine(
            outcome.from == outcome.to
                ? "The schema roost is at version \(outcome.to) already."
                : "The schema roost is at version \(outcome.to) now (was \(outcome.from)).")
    }
}
