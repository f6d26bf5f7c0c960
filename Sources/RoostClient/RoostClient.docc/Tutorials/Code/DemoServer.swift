import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The HTTP side of `roost demo`. Your own server takes its place.
struct DemoServer: Sendable {
    struct Refusal: Error {
        let status: Int
        /// The same request cannot succeed.
        var isPermanent: Bool { (400..<500).contains(status) && status != 401 && status != 429 }
    }

    struct User: Decodable, Sendable {
        let id: UUID
        let name: String
        let token: String
    }

    let address: URL

    func user(named name: String) async throws -> User {
        struct Session: Decodable { let users: [User] }
        let session = try await fetch(Session.self, URLRequest(url: url("session")))
        guard let user = session.users.first(where: { $0.name == name }) else { throw Refusal(status: 404) }
        return user
    }

    func messages(of conversation: UUID, as user: User) async throws -> [Message] {
        struct Page: Decodable { let messages: [Message] }
        let request = authorized(url("conversations/\(conversation.uuidString.lowercased())/messages"), user)
        return try await fetch(Page.self, request).messages
    }

    /// The same `localID` again gives the row of the first time.
    func send(_ draft: Draft, localID: UUID, as user: User) async throws {
        var request = authorized(url("messages"), user)
        request.httpMethod = "POST"
        request.httpBody = try JSONEncoder().encode([
            "conversation_id": draft.conversation.uuidString, "body": draft.body, "local_id": localID.uuidString,
        ])
        _ = try await fetch(Message.self, request)
    }

    private func url(_ path: String) -> URL { address.appendingPathComponent("demo/api/\(path)") }

    private func authorized(_ url: URL, _ user: User) -> URLRequest {
        var request = URLRequest(url: url)
        request.setValue("Bearer \(user.token)", forHTTPHeaderField: "Authorization")
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        return request
    }

    private func fetch<Answer: Decodable>(_ type: Answer.Type, _ request: URLRequest) async throws -> Answer {
        let (body, response) = try await URLSession.shared.data(for: request)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        guard status == 200 else { throw Refusal(status: status) }
        return try JSONDecoder().decode(type, from: body)
    }
}
