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

    var messages: [Message] { rows.values.sorted { $0.id < $1.id } }

    init(server: DemoServer, user: DemoServer.User, conversation: UUID) {
        self.server = server
        self.user = user
        self.conversation = conversation
        client = RoostClient(url: server.address) {
            try await server.user(named: user.name).token
        }
        room = client.channel("conversation:\(conversation.uuidString.lowercased())")
    }
}
