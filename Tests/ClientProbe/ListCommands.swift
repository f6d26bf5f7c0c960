import Foundation
import RoostClient

/// What a session does with lists of rows, by commands whose `name` is the list's.
extension SessionScenario {
    /// A message of the sample chat.
    private struct Message: Decodable, Equatable, Sendable {
        let id: Int?
        let body: String
        let local_id: UUID?
    }

    private struct OrderedRow: Decodable, Equatable, Sendable {
        let id: Int
        let body: String?
    }

    /// - Returns: false where the command is none about lists.
    func handleList(_ command: Command) throws -> Bool {
        let name = command.name ?? ""
        switch command.do {
        case "rows": show(try rows(command), name, command.pause ?? 0)
        case "messages": show(try messages(command), name, 0)
        case "reload": reloads[name]?()
        case "write":
            guard let outbox = outboxes[name], let conversation = command.conversation else { return false }
            let draft = ProbeServer.Draft(conversation_id: conversation, body: command.text ?? "")
            Task { try await outbox.enqueue(draft, localID: UUID()) }
        case "discard":
            guard let outbox = outboxes[name] else { return false }
            Task { for item in try await outbox.items() { try await outbox.discard(localID: item.localID) } }
        default: return false
        }
        return true
    }

    private func order(_ command: Command) -> RowOrder { command.order.map { .descending($0) } ?? .key }

    private func keeping(_ command: Command) -> RowKeeping? {
        command.folder.map { .kept(in: FileRowStorage(in: URL(fileURLWithPath: $0)), as: command.name ?? "") }
    }

    private func rows(_ command: Command) throws -> LiveRows<OrderedRow> {
        try channel(command).rows(
            of: OrderedRow.self, in: command.table ?? "", where: command.filter.map { .eq("room", $0) },
            order: order(command), limit: command.limit ?? 100, keeping: keeping(command))
    }

    /// Messages with the drafts of an outbox, which a server at port `api` writes.
    private func messages(_ command: Command) throws -> LiveRows<Message> {
        let server = ProbeServer(port: command.api ?? 0)
        let outbox = Outbox<ProbeServer.Draft>(
            storage: MemoryOutboxStorage(),
            options: OutboxOptions(firstPause: .milliseconds(50), longestPause: .milliseconds(200)),
            classify: { error, _ in error is ProbeServer.Refusal ? .reject("\(error)") : .retry },
            send: { item in try await server.post(item.payload, localID: item.localID) })
        outboxes[command.name ?? ""] = outbox
        start("outbox \(command.name ?? "")") {
            do { try await outbox.run() } catch { Output.line("failed", ["text": "\(error)"]) }
        }
        let drafts = PendingRows<Message>.of(outbox) { item in
            Message(id: nil, body: item.payload.body, local_id: item.localID)
        }
        return try channel(command).rows(
            of: Message.self, in: "messages", where: command.conversation.map { .eq("conversation_id", $0) },
            order: order(command), limit: command.limit ?? 100, keeping: keeping(command), pending: drafts)
    }

    private func show<Row: Decodable & Sendable>(_ lists: LiveRows<Row>, _ name: String, _ pause: Double) {
        reloads[name] = { lists.reload() }
        start(name) {
            do throws(RoostError) {
                for try await list in lists {
                    Output.line("list", Self.text(list, name))
                    // A consumer that is slow.
                    if pause > 0 { do { try await Task.sleep(for: .seconds(pause)) } catch { return } }
                }
            } catch {
                Output.line("failed", ["text": error.description])
            }
            Output.line("ended", ["name": name])
        }
    }

    private static func text<Row>(_ list: RowList<Row>, _ name: String) -> [String: any Sendable] {
        let bodies = list.map { item in
            (item.row as? Message)?.body ?? (item.row as? OrderedRow).map { "\($0.id) \($0.body ?? "")" } ?? ""
        }
        return [
            "name": name, "rows": bodies, "ids": list.map(\.id), "states": list.map { "\($0.state)" },
            "live": list.isLive, "more": list.hasMore, "problem": list.problem ?? "",
        ]
    }
}
