import Foundation
import Observation
import RoostClient

@MainActor @Observable final class Chat {
    let client: RoostClient
    private let server: DemoServer
    private let user: DemoServer.User
    private let conversation: UUID
    private let room: Channel
    private var rows: [Int64: Message] = [:]
    private let outbox: Outbox<Draft>
    private(set) var pending: [OutboxItem<Draft>] = []

    var messages: [Message] { rows.values.sorted { $0.id < $1.id } }

    init(server: DemoServer, user: DemoServer.User, conversation: UUID, folder: URL) throws {
        self.server = server
        self.user = user
        self.conversation = conversation
        client = RoostClient(url: server.address) {
            try await server.user(named: user.name).token
        }
        room = client.channel("conversation:\(conversation.uuidString.lowercased())")
        outbox = Outbox(
            storage: try FileOutboxStorage(at: folder.appendingPathComponent("outbox")),
            classify: { error, _ in
                (error as? DemoServer.Refusal)?.isPermanent == true ? .reject("The server refused it.") : .retry
            },
            send: { (item: OutboxItem<Draft>) in
                try await server.send(item.payload, localID: item.localID, as: user)
            })
    }

    func follow() async throws {
        let changes = room.changes(
            of: Message.self, in: "messages", where: .eq("conversation_id", conversation))
        try await room.subscribe()
        try await load()
        for try await change in changes {
            switch change {
            case .insert(let message, _), .update(let message, old: _, _):
                rows[message.id] = message
                if let localID = message.localID { try await outbox.confirm(localID: localID) }
            case .delete(let old, _):
                if let id = old.value("id", as: Int64.self) { rows[id] = nil }
            case .reload: try await load()
            case .unreadable(let row): print(row.reason)
            }
        }
    }

    private func load() async throws {
        for message in try await server.messages(of: conversation, as: user) { rows[message.id] = message }
    }

    func send(_ body: String) async throws {
        try await outbox.enqueue(
            Draft(conversation: conversation, body: body), localID: UUID(), lane: conversation.uuidString)
    }

    func runOutbox() async throws {
        let events = await outbox.events()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [outbox] in try await outbox.run() }
            group.addTask { [outbox, client] in
                for await event in client.socketEvents where event == .connected { await outbox.networkIsBack() }
            }
            pending = try await outbox.items()
            for await _ in events { pending = try await outbox.items() }
            group.cancelAll()
        }
    }
}
