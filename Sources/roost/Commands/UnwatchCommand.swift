import ArgumentParser
import Settings

struct UnwatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unwatch",
        abstract: "Stop following a table's changes.",
        discussion: "Takes Roost's triggers off the table. Its subscribers stay connected and get nothing more of it."
    )

    @Argument(help: "The table, as SQL writes it: messages, public.messages, \"Chat\".\"Messages\".")
    var table: String

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func run() async throws {
        let url = try await options.load().requireDatabaseURL(for: "roost unwatch")
        try TableWatch(url: url).unwatch(table: table)
    }
}
