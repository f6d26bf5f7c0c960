import ArgumentParser
import Settings

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the hub.",
        discussion: """
            Prints `listening on ws://HOST:PORT/realtime/v1/websocket` when it takes connections and follows the \
            database. SIGTERM and Ctrl-C drain it: sockets are closed in batches over drain.seconds. While the \
            database is away the hub goes on, tries again with growing pauses, and says so in the log and in /readyz.
            """
    )

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let configuration = try await options.load()
        _ = try configuration.requireDatabaseURL(for: "roost serve")
        try configuration.requireKeys(for: "roost serve")
        try await Server(configuration).run()
    }
}
