import ArgumentParser
import Settings

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Run a private Postgres with a sample chat, the hub, and a page to open.",
        discussion: """
            Everything it makes is kept in one folder and used again the next time. Ctrl-C stops the hub and the \
            Postgres it started. The database and the secret are the demo's own; database.url and jwt.secret are not \
            used.
            """
    )

    @Option(help: ArgumentHelp("The folder for the database and its data.", valueName: "folder"))
    var folder = ".roost"

    @Flag(help: "Throw the folder's data away first.")
    var fresh = false

    @Option(help: ArgumentHelp("The port of the private Postgres, on 127.0.0.1.", valueName: "port"))
    var postgresPort = 54329

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        try await DemoServer(options.load(), folder: folder, fresh: fresh, postgresPort: postgresPort).run()
    }
}
