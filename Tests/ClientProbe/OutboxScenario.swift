import Foundation
import RoostClient

/// A chat app that is not always online: it writes through an outbox and reads the changes of its own rows.
///
/// Its order is the first line of standard input; it ends with standard input.
struct OutboxScenario {
    struct Order: Decodable {
        let url: String
        let token: String
        /// The port of the application's server, which takes POSTs of rows.
        let api: UInt16
        /// Of the outbox.
        let file: String
        let conversation: UUID
        /// What to write: `count` messages from the number `first` on, in so many lanes, so many a second.
        let first: Int
        let count: Int
        let lanes: Int
        let rate: Double
        /// Whether to write only what the channel is owed: nothing before it is subscribed. Nil: no.
        let waits: Bool?
    }

    private struct Message: Decodable, Identifiable, Sendable {
        let id: Int64
        let body: String
        let local_id: UUID?
    }

    func run() async throws {
        var lines = InputLines.stream().makeAsyncIterator()
        guard let line = await lines.next() else { return }
        let order = try JSONDecoder().decode(Order.self, from: Data(line.utf8))
        guard let url = URL(string: order.url) else { return }
        let server = ProbeServer(port: order.api)
        let outbox = Outbox(
            storage: try FileOutboxStorage(at: URL(fileURLWithPath: order.file)),
            options: OutboxOptions(
                capacity: 2_000, sendTimeout: .seconds(3), firstPause: .milliseconds(100), longestPause: .seconds(1)),
            classify: { error, _ in error is ProbeServer.Refusal ? .reject("\(error)") : .retry },
            send: { item in try await server.post(item.payload, localID: item.localID) })
        var configuration = RoostClient.Configuration { order.token }
        configuration.backoff = Backoff.Policy(base: .milliseconds(100), cap: .milliseconds(300))
        let client = RoostClient(url: url, configuration: configuration)

        await withTaskGroup(of: Void.self) { group in
            let (states, sockets, events) = (client.states, client.socketEvents, await outbox.events())
            group.addTask { await Self.report { try await outbox.run() } }
            group.addTask {
                for await state in states {
                    Output.line("state", ["state": "\(state)".prefix { $0 != "(" }.description])
                }
            }
            group.addTask {
                for await event in sockets where event == .connected {
                    Output.line("socket")
                    await outbox.networkIsBack()
                }
            }
            group.addTask { for await event in events { Self.tell(event) } }
            let (subscribed, subscription) = AsyncStream<Void>.makeStream()
            group.addTask { await Self.report { try await Self.follow(client, order, outbox, subscription) } }
            group.addTask {
                if order.waits == true { for await _ in subscribed { break } }
                await Self.report { try await Self.write(order, outbox) }
            }
            while await lines.next() != nil {}
            group.cancelAll()
        }
    }

    private static func report(_ body: () async throws -> Void) async {
        do { try await body() } catch { Output.line("failed", ["reason": "\(error)"]) }
    }

    private static func write(_ order: Order, _ outbox: Outbox<ProbeServer.Draft>) async throws {
        Output.line("stored", ["count": try await outbox.items().count])
        for number in order.first..<order.first + order.count {
            let lane = "\(number % order.lanes)"
            let draft = ProbeServer.Draft(conversation_id: order.conversation, body: "\(lane) \(number)")
            try await outbox.enqueue(draft, localID: UUID(), lane: lane)
            try await Task.sleep(for: .seconds(1 / order.rate))
        }
        Output.line("written")
    }

    private static func follow(
        _ client: RoostClient, _ order: Order, _ outbox: Outbox<ProbeServer.Draft>,
        _ subscription: AsyncStream<Void>.Continuation
    ) async throws {
        let room = client.channel("conversation")
        let changes = room.changes(
            of: Message.self, in: "messages", where: .eq("conversation_id", order.conversation))
        try await room.subscribe()
        Output.line("subscribed")
        subscription.yield()
        for try await change in changes {
            guard case .insert(let message, _) = change else {
                Output.line("unexpected", ["change": "\(change)"])
                continue
            }
            Output.line("row", ["id": Int(message.id), "body": message.body])
            if let localID = message.local_id { try await outbox.confirm(localID: localID) }
        }
    }

    private static func tell(_ event: OutboxEvent) {
        switch event {
        case .queued, .discarded: break
        case .sent(let localID): Output.line("sent", ["local_id": localID.uuidString.lowercased()])
        case .failed(_, let reason), .storageFailed(let reason): Output.line("failed", ["reason": reason])
        case .willRetry(_, _, let reason): Output.line("retry", ["reason": reason])
        case .overflowed: Output.line("failed", ["reason": "the events overflowed"])
        }
    }
}
