import ArgumentParser
import Glibc
import Settings

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Run the hub.",
        discussion: """
            Prints `listening on ws://HOST:PORT/realtime/v1/websocket` when it takes connections and follows the \
            database. SIGTERM and Ctrl-C drain it: sockets are closed in batches over drain.seconds. While the \
            database cannot be reached, the hub goes on, tries again with growing pauses, and says so in the log and \
            in /readyz. SIGHUP makes it read its configuration again; config/roost.yaml says for each key whether a \
            reload changes it.
            """
    )

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        // Early, before anything that takes time: a reload signal must not end a starting hub.
        Signals.handleSignals(to: [SIGHUP])
        let configuration = try options.loadAndApply()
        try await configuration.checkForServing()
        try await Server(configuration) { [options] in try options.readLayers() }.runUntilSignal()
    }
}
