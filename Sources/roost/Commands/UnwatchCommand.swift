import ArgumentParser
import Settings

struct UnwatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unwatch",
        abstract: "Stop following a table's changes.",
        discussion: """
            Takes Roost's triggers off the table, and forgets its scope. Its subscribers stay connected and get nothing \
            more of it. A table that another's scope rests on stays watched.
            """
    )

    @Argument(help: "The table, as SQL writes it: messages, public.messages, \"Chat\".\"Messages\".")
    var table: String

    @OptionGroup
    var patience: WaitOption

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let url = try await options.load().requireDatabaseURL(for: "roost unwatch")
        try TableWatch(url: url, wait: patience.wait).unwatch(table: table)
    }
}
