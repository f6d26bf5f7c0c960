import Foundation
import Observation
import RoostClient

@MainActor @Observable final class Chat {
    let client: RoostClient
    private let server: DemoServer
    private let user: DemoServer.User
    private let conversation: UUID

    init(server: DemoServer, user: DemoServer.User, conversation: UUID) {
        self.server = server
        self.user = user
        self.conversation = conversation
        client = RoostClient(url: server.address) {
            try await server.user(named: user.name).token
        }
    }
}
