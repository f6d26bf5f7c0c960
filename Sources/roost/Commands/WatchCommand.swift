import ArgumentParser
import Settings

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Follow a table's changes, or those of every table of a publication.",
        discussion: """
            Puts Roost's triggers on the table. From then on clients can subscribe to it. Examples: \
            `roost watch public.messages`, `roost watch --publication supabase_realtime`.
            """
    )

    @Argument(help: "The table, as SQL writes it: messages, public.messages, \"Chat\".\"Messages\".")
    var table: String?

    @Option(help: ArgumentHelp("Watch every table of this publication.", valueName: "name"))
    var publication: String?

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func validate() throws {
        if (table == nil) == (publication == nil) {
            throw ValidationError("Name one thing to watch: a table, or a publication with --publication.")
        }
    }

    func run() async throws {
        let url = try await options.load().requireDatabaseURL(for: "roost watch")
        if let table {
            try TableWatch(url: url).watch(table: table)
        } else if let publication {
            try TableWatch(url: url).watch(publication: publication)
        }
    }
}
