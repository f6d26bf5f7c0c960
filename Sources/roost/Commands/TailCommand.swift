import ArgumentParser
import Settings

struct TailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Join a channel and print its events as JSON lines.",
        discussion: """
            Connects to the hub as a client does: broadcasts, presence and, with --table, row changes. Without --token \
            it signs one with jwt.secret for the role service_role. Ctrl-C leaves. Examples: `roost tail room1`, \
            `roost tail room1 --table public.messages --filter conversation_id=eq.7`.
            """
    )

    @Argument(help: "The channel's name, with or without `realtime:`.")
    var topic: String

    @Option(help: ArgumentHelp("Subscribe to this table's changes, too.", valueName: "schema.table"))
    var table: String?

    @Option(help: ArgumentHelp("Only rows that match, as clients write it: id=eq.7.", valueName: "filter"))
    var filter: String?

    @Flag(help: "Join the private channel of that name.")
    var `private` = false

    @Option(help: ArgumentHelp("The hub; default: http.host and http.port of the configuration.", valueName: "ws-url"))
    var url: String?

    @Option(help: ArgumentHelp("The token to join with.", valueName: "jwt"))
    var token: String?

    @OptionGroup(title: "Configuration")
    var options: ConfigurationOptions

    func validate() throws {
        if filter != nil, table == nil {
            throw ValidationError("--filter needs --table: it chooses among a table's rows.")
        }
    }

    func run() async throws {
        let request = TailRequest(
            topic: topic, table: table, filter: filter, isPrivate: `private`, url: url, token: token)
        try await TopicTail(request, options.load()).run()
    }
}
