import ArgumentParser
import Glibc
import Settings
import Wire

struct StreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stream",
        abstract: "Write, read and end streams: replies that grow.",
        discussion: """
            Speaks to the hub over HTTP, as a backend does. Without --token it signs one with jwt.secret for the role \
            service_role. Example: `some-model | roost stream append reply/1 --create --close`, and in another window \
            `roost stream read reply/1`.
            """,
        subcommands: [
            CreateStreamCommand.self, AppendStreamCommand.self, ReadStreamCommand.self, CloseStreamCommand.self,
            CancelStreamCommand.self, DeleteStreamCommand.self,
        ])
}

/// The stream that a command works on, its hub and its token.
struct StreamOptions: ParsableArguments {
    @Argument(help: "The stream's name, such as reply/1.")
    var name: String

    @OptionGroup var hub: HubOptions

    func makeTransfer() throws -> HubTransfer {
        try hub.makeTransfer(to: "/streams/" + HubOptions.percentEncoded(name), for: "roost stream")
    }

    /// The headers of a request that creates a stream.
    static func creationHeaders(_ type: String, opensNext: Bool) -> [String] {
        ["Content-Type: \(type)"] + (opensNext ? ["Stream-Generation: next"] : [])
    }
}

struct CreateStreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a stream, if it does not exist yet.")

    @OptionGroup var stream: StreamOptions

    @Option(help: ArgumentHelp("text/plain, application/json, or any other type for bytes.", valueName: "media-type"))
    var type = "text/plain"

    @Flag(help: "If it has ended, open the name for its next turn.")
    var next = false

    func run() async throws {
        _ = try stream.makeTransfer().performRequest("PUT", StreamOptions.creationHeaders(type, opensNext: next))
    }
}

struct AppendStreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "append",
        abstract: "Append what arrives on the standard input, as it arrives.",
        discussion: """
            With --format the input is what a model's API streams (server-sent events), and its text is appended: \
            openai (chat completions and responses), anthropic (messages), vercel (UI message streams). Example: \
            `curl -sN https://… | roost stream append reply/1 --create --close --format openai`.
            """)

    @OptionGroup var stream: StreamOptions

    @Option(help: ArgumentHelp("text/plain, application/json, or any other type for bytes.", valueName: "media-type"))
    var type = "text/plain"

    @Option(help: "What the input is: raw, openai, anthropic or vercel.")
    var format = ReplyFormat.raw

    @Flag(help: "Create the stream if it does not exist.")
    var create = false

    @Flag(help: "The same, and if it has ended, open the name for its next turn.")
    var next = false

    @Flag(help: "End the stream with the input.")
    var close = false

    func run() async throws {
        let client = try stream.makeTransfer()
        if create || next { _ = try client.performRequest("PUT", StreamOptions.creationHeaders(type, opensNext: next)) }
        _ = try client.performRequest(
            "POST", ["Content-Type: \(type)"] + (close ? ["Stream-Closed: true"] : []),
            body: ReplyInput(STDIN_FILENO, format))
    }
}

struct ReadStreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Print what a stream has and what comes, until it ends.",
        discussion: """
            Ends with 0 if the stream is complete, with 1 if it was cancelled or aborted, or cannot be read. Text and \
            bytes are printed to the byte, except for control characters on a terminal; JSON is printed as one message \
            per line.
            """)

    @OptionGroup var stream: StreamOptions

    @Flag(help: "Print what there is now, and end.")
    var once = false

    func run() async throws {
        let client = try stream.makeTransfer()
        try StreamPrinter(client, isOnce: once).printStream()
    }
}

struct CloseStreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "close", abstract: "End a stream: it is complete.")

    @OptionGroup var stream: StreamOptions

    func run() async throws {
        _ = try stream.makeTransfer().performRequest("POST", ["Stream-Closed: true", "Content-Length: 0"])
    }
}

struct CancelStreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Stop a stream where it is now: nobody receives a byte more.")

    @OptionGroup var stream: StreamOptions

    func run() async throws {
        _ = try stream.makeTransfer().performRequest("POST", ["Content-Length: 0"], behind: "/cancel")
    }
}

struct DeleteStreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "delete", abstract: "Forget a stream at once.")

    @OptionGroup var stream: StreamOptions

    func run() async throws { _ = try stream.makeTransfer().performRequest("DELETE", []) }
}
