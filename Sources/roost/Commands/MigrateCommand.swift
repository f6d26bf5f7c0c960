import ArgumentParser
import Settings

struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Install or upgrade Roost's schema in the database.",
        discussion: """
            Creates the schema `roost` with its outbox table and functions; your own tables are not touched before \
            `roost watch`. It can be repeated at any time, and does nothing where nothing is to do.
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
            print(SchemaMigration.sql())
        } else {
            let url = try await options.load().requireDatabaseURL(for: "roost migrate")
            try SchemaMigration(url: url, wait: patience.wait).run()
        }
    }
}
