import ArgumentParser
import Wire

/// Options of the commands that use the API for backends (docs/server-api.md).
struct ServerOptions: ParsableArguments {
    @Flag(help: "Print the hub's answers as they are: JSON, one a line.")
    var json = false

    @OptionGroup var hub: HubOptions

    /// Sends a request, prints the response, and continues with further pages.
    ///
    /// - Parameters:
    ///   - path: below `/api`, with its query, if any.
    ///   - lines: formats a response for display.
    /// - Throws: `RunFailure`, also if some hubs did not answer: the output is incomplete then.
    func runRequest(_ method: String = "GET", _ path: String, for command: String, _ lines: (JSON) -> [String]) throws {
        let transfer = try hub.makeTransfer(to: "/api", for: command)
        var cursor: String?
        var silent: [String] = []
        repeat {
            let page = cursor.map { (path.contains("?") ? "&" : "?") + "cursor=" + $0 } ?? ""
            let bytes = try transfer.performRequest(
                method, method == "POST" ? ["Content-Length: 0"] : [], behind: path + page)
            let answer: JSON
            do { answer = try JSON(parsing: bytes) } catch {
                throw RunFailure("What answers at --url is not a hub that this command knows.")
            }
            if json {
                StandardOutput.write(bytes + [UInt8(ascii: "\n")])
            } else {
                for line in lines(answer) { StandardOutput.write(Array((line + "\n").utf8)) }
            }
            silent = answer["incomplete"]?.elements.compactMap(\.string) ?? []
            cursor = answer["next"]?.string
        } while cursor != nil
        guard silent.isEmpty else {
            let names =
                silent == ["*"]
                ? "The other hubs cannot be reached" : "No answer from \(silent.joined(separator: ", "))"
            throw RunFailure("\(names): the answer is not complete, and what was asked for may not be done there.")
        }
    }

    /// `count` and a noun, in the plural unless `count` is 1.
    static func countText(_ count: Int?, _ word: String) -> String {
        "\(count ?? 0) \(word)\(count == 1 ? "" : "s")"
    }

    static func channelName(_ channel: JSON) -> String {
        (channel["topic"]?.string ?? "") + (channel["private"]?.bool == true ? " (private)" : "")
    }
}

struct ChannelsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channels",
        abstract: "List the channels that have members, on all hubs.",
        discussion: """
            Asks a running hub over HTTP. Without --token it signs one with jwt.secret for the role service_role. \
            Example: `roost channels --prefix room`.
            """)

    @Option(help: ArgumentHelp("Only those whose topic begins with this.", valueName: "text"))
    var prefix = ""

    @OptionGroup var server: ServerOptions

    func run() async throws {
        let query = "?limit=500" + (prefix.isEmpty ? "" : "&prefix=" + HubOptions.percentEncoded(prefix))
        try server.runRequest("GET", "/channels" + query, for: "roost channels") { page in
            page["channels"]?.elements.map { channel in
                let counts = [
                    ServerOptions.countText(channel["connections"]?.int, "connection"),
                    "\(channel["present"]?.int ?? 0) present", "\(channel["typing"]?.int ?? 0) typing",
                ]
                return "\(ServerOptions.channelName(channel))\t\(counts.joined(separator: ", "))"
            } ?? []
        }
    }
}

struct ChannelPresenceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "presence",
        abstract: "List who is present in a channel.",
        discussion: "Prints a line for each meta: the member's key, a tab, and what it tracks as JSON.")

    @Argument(help: "The channel's topic, such as room1.")
    var topic: String

    @Flag(name: .customLong("private"), help: "The private channel of that name.")
    var isPrivate = false

    @OptionGroup var server: ServerOptions

    func run() async throws {
        let path =
            "/channels/\(HubOptions.percentEncoded(topic))/presence?limit=500" + (isPrivate ? "&private=true" : "")
        try server.runRequest("GET", path, for: "roost presence") { page in
            page["members"]?.elements.flatMap { member in
                member["metas"]?.elements.map { "\(member["key"]?.string ?? "")\t\($0)" } ?? []
            } ?? []
        }
    }
}

struct UserCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "user",
        abstract: "Show whether a user is online, and where.",
        discussion: "Prints a line for each connection: the hub, the connection, how long it is open, and its channels."
    )

    @Argument(help: ArgumentHelp("The user: the claim `sub` of its tokens.", valueName: "sub"))
    var user: String

    @OptionGroup var server: ServerOptions

    func run() async throws {
        try server.runRequest("GET", "/users/" + HubOptions.percentEncoded(user), for: "roost user") { answer in
            let state = answer["online"]?.bool == true ? "online" : "offline"
            let count = ServerOptions.countText(answer["count"]?.int, "connection")
            var lines = ["\(state), \(count)"]
            for connection in answer["connections"]?.elements ?? [] {
                let channels = (connection["channels"]?.elements ?? []).map { ServerOptions.channelName($0) }
                let seconds = connection["seconds"]?.int ?? 0
                let parts = [connection["hub"]?.string ?? "", connection["id"]?.string ?? "", "\(seconds) s"]
                lines.append((parts + [channels.joined(separator: ", ")]).joined(separator: "\t"))
            }
            return lines
        }
    }
}

struct DisconnectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disconnect",
        abstract: "Close all connections of a user, on all hubs.",
        discussion: """
            Its clients come back if their tokens are still good. To keep a user out, stop giving it tokens, or take its \
            rights away and have them decided anew (docs/server-api.md).
            """)

    @Argument(help: ArgumentHelp("The user: the claim `sub` of its tokens.", valueName: "sub"))
    var user: String

    @OptionGroup var server: ServerOptions

    func run() async throws {
        try server.runRequest("POST", "/users/\(HubOptions.percentEncoded(user))/disconnect", for: "roost disconnect") {
            answer in
            var hubs: [String] = []
            answer["hubs"]?.forEachMember { hubs.append("\($0.value.int ?? 0) on \($0.key)") }
            let count = ServerOptions.countText(answer["disconnected"]?.int, "connection")
            return ["closed \(count): \(hubs.joined(separator: ", "))"]
        }
    }
}
