import ArgumentParser
import Foundation
import Glibc
import RoostClient
import Settings
import Wire

struct TailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail",
        abstract: "Join a channel and print its events as JSON lines, or follow a stream.",
        discussion: """
            Connects to the hub as a client does: broadcasts, presence and, with --table, row changes. With --stream \
            it prints what the stream has and what comes, and ends with the stream: with 0 if it is complete, with 1 \
            if not. For a stream of JSON it prints one line per message. A refusal that trying again cannot change ends it, with 1. Without --token it signs one with jwt.secret \
            for the role service_role. Ctrl-C leaves. Examples: `roost tail room1`, `roost tail room1 --table \
            public.messages --filter conversation_id=eq.7`, `roost tail --stream reply/1`.
            """
    )

    @Argument(help: "The channel's name, with or without `realtime:`.")
    var topic: String?

    @Option(help: ArgumentHelp("Follow this stream instead, such as reply/1.", valueName: "name"))
    var stream: String?

    @Option(help: ArgumentHelp("Also subscribe to this table's changes.", valueName: "schema.table"))
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
        guard stream != nil else {
            if topic == nil { throw ValidationError("Name a channel, or a stream with --stream.") }
            return
        }
        if topic != nil || table != nil || `private` {
            throw ValidationError("--stream stands alone: a stream has a channel of its own, and no tables.")
        }
    }

    func run() async throws {
        let hub = TailedHub(url: url, token: token)
        if let stream { return try await StreamTail(stream, of: hub, options.loadAndApply()).printStream() }
        let request = TailRequest(topic: topic ?? "", table: table, filter: filter, isPrivate: `private`, hub: hub)
        try await TopicTail(request, options.loadAndApply()).run()
    }
}

/// The hub that `roost tail` connects to, and its token.
struct TailedHub: Sendable {
    /// The hub's WebSocket URL; nil for the one in the configuration.
    let url: String?
    /// The token to join with; nil to sign one with the configured secret.
    let token: String?

    /// A client of the hub, not connected yet.
    func makeClient(
        _ configuration: RoostConfiguration, _ configure: (inout RoostClient.Configuration) -> Void = { _ in }
    ) throws -> RoostClient {
        let token = try joinToken(configuration)
        var settings = RoostClient.Configuration { token }
        configure(&settings)
        return RoostClient(url: try hubURL(configuration), configuration: settings)
    }

    private func hubURL(_ configuration: RoostConfiguration) throws -> URL {
        let text = url ?? "\(configuration.socketScheme)://\(configuration.httpHost):\(configuration.httpPort)"
        guard let url = URL(string: text), url.host() != nil, ["ws", "wss"].contains(url.scheme) else {
            throw RunFailure("--url must be ws://HOST:PORT or wss://HOST:PORT, not \(Mask.url(text)).", .usage)
        }
        return url
    }

    private func joinToken(_ configuration: RoostConfiguration) throws -> String {
        if let token { return token }
        let secret = try configuration.requireJWTSecret(for: "roost tail without --token")
        return try DevelopmentToken(role: "service_role", lifetime: 86_400).signed(with: secret)
    }
}

/// Remarks of `roost tail` about its connection, on standard error.
enum TailNotes {
    static func say(_ sentence: String) { StandardError.write("roost tail: \(sentence)\n") }

    static func say(_ event: SocketEvent) {
        switch event {
        case .connecting, .connected, .refused: break
        case .lost(let reason): say(reason)
        case .waiting(let wait): say(retryText(wait))
        }
    }

    /// The reason why another attempt cannot succeed; nil if it may succeed later.
    static func refusal(_ event: SocketEvent) -> RoostError? {
        guard case .refused(let status) = event, (300..<500).contains(status), ![408, 425, 429].contains(status) else {
            return nil
        }
        let advice =
            switch status {
            case 401:
                "it does not accept the token; pass another with --token, or use the jwt.secret that the hub has. Its log says "
                    + "what is wrong with it"
            case 404: "there is no hub at this address and path; correct --url"
            default: "its log says why"
            }
        return .refused(reason: "HTTP status \(status): \(advice).")
    }

    /// The same for a join: the token will not change.
    static func refusal(ofJoin reason: String) -> RoostError? {
        NextAction(reason: reason) == .refreshToken ? .refused(reason: reason) : nil
    }

    static func retryText(_ wait: Duration) -> String {
        "trying again in \(wait.formatted(.units(allowed: [.seconds], fractionalPart: .show(length: 1))))"
    }

    /// Waits until the task is cancelled.
    static func waitForCancellation() async {
        for await _ in AsyncStream<Never>.makeStream().stream {}
    }
}

/// The arguments of `roost tail`.
struct TailRequest: Sendable {
    /// The channel's name, with or without `realtime:`.
    let topic: String
    /// The table to subscribe to, as `schema.table` or `table`; nil for no row changes.
    let table: String?
    let filter: String?
    let isPrivate: Bool
    let hub: TailedHub
}

/// Joins one channel and prints its events, for `roost tail`.
struct TopicTail {
    private let request: TailRequest
    private let configuration: RoostConfiguration
    /// The most events that wait for the output.
    private static let patience = 65_536

    init(_ request: TailRequest, _ configuration: RoostConfiguration) {
        self.request = request
        self.configuration = configuration
    }

    /// Joins and prints until Ctrl-C or SIGTERM, or until the hub refuses the channel for good.
    func run() async throws {
        let client = try request.hub.makeClient(configuration) { $0.bufferLimit = Self.patience }
        Signals.handleSignals(to: [SIGINT, SIGTERM])
        let channel = client.channel(request.topic) {
            $0.isPrivate = request.isPrivate
            $0.presence = .members
        }
        // Held but not read: the changes arrive among the messages.
        let rows = subscribeRows(of: channel)
        defer { withExtendedLifetime(rows) {} }
        let outcome = await followChannel(channel, of: client)
        await client.disconnect()
        if let outcome { throw RunFailure(outcome.description, .refused) }
    }

    /// Returns nil on an interruption by the user, else the reason why the hub refuses the channel.
    private func followChannel(_ channel: Channel, of client: RoostClient) async -> RoostError? {
        let (messages, sockets, events) = (channel.messages, client.socketEvents, channel.events)
        return await withTaskGroup(of: RoostError?.self) { group in
            group.addTask {
                await Signals.waitForInterruption()
                return nil
            }
            group.addTask {
                for await message in messages { Self.printMessage(message) }
                // Another task reports why the channel ended.
                return await Self.waitForCancellation()
            }
            group.addTask {
                for await event in sockets {
                    if let refusal = TailNotes.refusal(event) { return refusal }
                    TailNotes.say(event)
                }
                return await Self.waitForCancellation()
            }
            group.addTask {
                for await event in events {
                    if case .failed(let error) = event { return error }
                    if case .rejoining(let wait, let reason) = event {
                        if let refusal = TailNotes.refusal(ofJoin: reason) { return refusal }
                        TailNotes.say("\(reason); \(TailNotes.retryText(wait))")
                    }
                }
                return await Self.waitForCancellation()
            }
            group.addTask {
                do throws(RoostError) { try await channel.subscribe() } catch {
                    // The channel is joined all the same, and worth following.
                    if case .subscription(let reason) = error { TailNotes.say(reason) }
                }
                return await Self.waitForCancellation()
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// Waits until the task is cancelled.
    private static func waitForCancellation() async -> RoostError? {
        await TailNotes.waitForCancellation()
        return nil
    }

    private static func printMessage(_ message: ChannelMessage) {
        if message.missedBefore > 0 {
            TailNotes.say("\(message.missedBefore) events were dropped: the output is read too slowly")
        }
        let event = JSONString.quoted(message.event)
        StandardOutput.writeLine("{\"event\":\(event),\"payload\":\(String(decoding: message.payload, as: UTF8.self))}")
    }

    private func subscribeRows(of channel: Channel) -> Changes<AnyRow>? {
        guard let name = request.table else { return nil }
        let parts = name.split(separator: ".", maxSplits: 1)
        let (schema, table) = parts.count == 2 ? (String(parts[0]), String(parts[1])) : ("public", name)
        return channel.changes(
            of: AnyRow.self, in: table, schema: schema, where: request.filter.map { .raw($0) }, key: .none)
    }

    /// Rows are printed as received, so nothing is decoded.
    private struct AnyRow: Decodable, Sendable {}
}
