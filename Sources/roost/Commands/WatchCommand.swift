import ArgumentParser
import ChangeFeed
import Settings

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Follow a table's changes, or those of every table of a publication.",
        discussion: """
            Puts Roost's triggers on the table. From then on clients can subscribe to it. Examples: \
            `roost watch public.messages`, `roost watch --publication supabase_realtime`. Triggers that were disabled are \
            enabled again.

            --scope says that who may see a row depends on one of its columns only, as long as the tables that --members \
            names (they are watched too) do not change. The hub then asks the policies once for each user and value, and \
            not for each row. What the policies contradict is refused; what a function in them hides from that, \
            `roost doctor` looks for on sample rows. Example: \
            `roost watch messages --scope conversation_id --members conversation_participants`.
            """
    )

    @Argument(help: "The table, as SQL writes it: messages, public.messages, \"Chat\".\"Messages\".")
    var table: String?

    @Option(help: ArgumentHelp("Watch every table of this publication.", valueName: "name"))
    var publication: String?

    @Option(help: ArgumentHelp("The column that visibility depends on; replaces an earlier one.", valueName: "column"))
    var scope: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp("The tables the scope rests on, separated by commas; may be repeated.", valueName: "tables"))
    var members: [String] = []

    @Flag(help: "Forget the scope that was declared; without this and --scope it stays.")
    var noScope = false

    @OptionGroup
    var patience: WaitOption

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func validate() throws {
        if (table == nil) == (publication == nil) {
            throw ValidationError("Name one thing to watch: a table, or a publication with --publication.")
        }
        if table == nil, scope != nil || noScope {
            throw ValidationError("A scope belongs to one table; name it instead of a publication.")
        }
        if scope != nil, noScope {
            throw ValidationError("--scope declares what --no-scope forgets; use one of them.")
        }
        if (scope == nil) != ScopeChange.names(in: members).isEmpty {
            throw ValidationError("--scope COLUMN and --members TABLE[,TABLE…] go together: visibility rests on both.")
        }
    }

    func run() async throws {
        let url = try await options.load().requireDatabaseURL(for: "roost watch")
        if let table {
            try TableWatch(url: url, wait: patience.wait).watch(table: table, scope: change)
        } else if let publication {
            try TableWatch(url: url, wait: patience.wait).watch(publication: publication)
        }
    }

    private var change: ScopeChange {
        if let scope { return .declare(column: scope, members: ScopeChange.names(in: members)) }
        return noScope ? .remove : .keep
    }
}
