import Foundation
import RoostClient

/// A client that does what standard input says, and tells what it is told.
final class SessionScenario {
    private(set) var client: RoostClient?
    private var tokens: Tokens?
    private var channels: [String: Channel] = [:]
    /// By the names of their streams.
    var writers: [String: StreamWriter] = [:]
    /// Whether those who write streams are to write no further piece.
    let isWritingOver = ProbeFlag()
    /// What reads lists again, and what drafts are put into, by the names of the lists.
    var reloads: [String: @Sendable () -> Void] = [:]
    var outboxes: [String: Outbox<ProbeServer.Draft>] = [:]
    private var tasks: [String: Task<Void, Never>] = [:]

    func run() async throws {
        for await line in InputLines.stream() {
            try await handle(try JSONDecoder().decode(Command.self, from: Data(line.utf8)))
        }
    }

    private func handle(_ command: Command) async throws {
        switch command.do {
        case "client": try make(command)
        case "connect": client?.connect()
        case "changes": follow(command)
        case "subscribe":
            let channel = try channel(command)
            start("subscribe") {
                do throws(RoostError) {
                    try await channel.subscribe()
                    Output.line("subscribed")
                } catch {
                    Output.line("refused", ["text": error.description])
                }
            }
        case "broadcasts":
            let sequence = try channel(command).broadcasts(command.text ?? "", of: [String: Int].self)
            start(command.name) {
                do throws(RoostError) {
                    for try await broadcast in sequence {
                        Output.line("broadcast", ["payload": broadcast.payload, "missed": broadcast.missedBefore])
                    }
                } catch {
                    Output.line("failed", ["text": error.description])
                }
                Output.line("ended", ["name": command.name ?? ""])
            }
        case "presence":
            let sequence = try channel(command).presence
            start(command.name) {
                for await update in sequence {
                    Output.line(
                        "presence",
                        [
                            "members": update.members.keys.sorted(), "joined": update.joined, "left": update.left,
                            "changed": update.changed,
                        ])
                }
                Output.line("ended", ["name": command.name ?? ""])
            }
        case "typists":
            let sequence = try channel(command).typing
            start(command.name) {
                for await set in sequence { Output.line("typing", ["users": set.typists.map { $0.userID ?? "" }]) }
                Output.line("ended", ["name": command.name ?? ""])
            }
        case "events":
            let sequence = try channel(command).events
            start(command.name) {
                for await event in sequence { Output.line("channel", ["what": "\(event)"]) }
                Output.line("ended", ["name": command.name ?? ""])
            }
        case "send":
            let channel = try channel(command)
            do throws(RoostError) {
                try await channel.send(event: command.text ?? "", payload: ["n": command.count ?? 0])
                Output.line("sent", ["n": command.count ?? 0])
            } catch {
                Output.line("unsent", ["text": error.description])
            }
        case "track":
            let channel = try channel(command)
            do throws(RoostError) {
                try await channel.track(["mood": command.text ?? ""])
                Output.line("tracked")
            } catch {
                Output.line("untracked", ["text": error.description])
            }
        case "type": try channel(command).typing(command.on ?? true, payload: ["user_id": command.text ?? ""])
        case "leave":
            try await channel(command).leave()
            Output.line("left")
        case "app_state": client?.appState = AppState(rawValue: command.state ?? "") ?? .active
        case "network_is_back": client?.networkIsBack()
        case "token": for token in command.tokens ?? [] { tokens?.add(token) }
        case "cancel": tasks.removeValue(forKey: command.name ?? "")?.cancel()
        case "disconnect":
            await client?.disconnect()
            Output.line("disconnected")
        case "drop": drop()
        case "resources": Output.line("resources", ["files": Resources.files, "sockets": Resources.sockets])
        default: guard try handleStream(command) || handleList(command) else { throw Unknown(command: command.do) }
        }
    }

    struct Unknown: Error { let command: String }

    private func make(_ command: Command) throws {
        guard let url = command.url.flatMap({ URL(string: $0) }) else { throw Unknown(command: "client without url") }
        let tokens = Tokens(command.tokens ?? [])
        var configuration = RoostClient.Configuration { tokens.next() }
        if let cap = command.backoff {
            configuration.backoff = Backoff.Policy(base: .seconds(cap), cap: .seconds(cap))
        }
        if let active = command.active { configuration.grace.active = .seconds(active) }
        if let limit = command.bufferLimit { configuration.bufferLimit = limit }
        configuration.presenceKey = command.name ?? configuration.presenceKey
        let client = RoostClient(url: url, configuration: configuration)
        self.client = client
        self.tokens = tokens
        let (states, events) = (client.states, client.socketEvents)
        start("states") {
            for await state in states { Output.line("state", ["state": "\(state)".prefix { $0 != "(" }.description]) }
            Output.line("ended", ["name": "states"])
        }
        start("sockets") {
            for await event in events { Output.line("socket", ["what": "\(event)"]) }
            Output.line("ended", ["name": "sockets"])
        }
    }

    func channel(_ command: Command) throws -> Channel {
        let name = command.channel ?? "room"
        guard let client else { throw Unknown(command: "no client") }
        let channel = client.channel(name)
        channels[name] = channel
        return channel
    }

    private func follow(_ command: Command) {
        do {
            let filter = command.filter.map { RowFilter.gte("id", $0) }
            let changes = try channel(command).changes(of: Row.self, in: command.table ?? "", where: filter)
            start(command.name) {
                do throws(RoostError) {
                    for try await change in changes { Self.tell(change) }
                } catch {
                    Output.line("failed", ["text": error.description])
                }
                Output.line("ended", ["name": command.name ?? ""])
            }
        } catch {
            Output.line("failed", ["text": "\(error)"])
        }
    }

    private static func tell(_ change: Change<Row>) {
        switch change {
        case .insert(let row, let info):
            Output.line("insert", ["id": row.id, "body": row.body ?? "", "cursor": info.cursor ?? ""])
        case .update(let row, let old, _):
            Output.line("update", ["id": row.id, "body": row.body ?? "", "old": old.value("id", as: Int.self) ?? -1])
        case .delete(let old, _): Output.line("delete", ["id": old.value("id", as: Int.self) ?? -1])
        case .reload(let reason): Output.line("reload", ["reason": "\(reason)"])
        case .unreadable(let row): Output.line("unreadable", ["reason": row.reason])
        }
    }

    func start(_ name: String?, _ body: @escaping @Sendable () async -> Void) {
        tasks[name ?? ""]?.cancel()
        tasks[name ?? ""] = Task { await body() }
    }

    private func drop() {
        for task in tasks.values { task.cancel() }
        tasks = [:]
        channels = [:]
        (writers, reloads, outboxes) = ([:], [:], [:])
        client = nil
        tokens = nil
    }
}
