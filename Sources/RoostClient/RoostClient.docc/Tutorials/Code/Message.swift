import Foundation

struct Message: Codable, Identifiable, Sendable {
    let id: Int64
    let senderID: UUID
    let body: String
    let localID: UUID?

    enum CodingKeys: String, CodingKey {
        case id
        case senderID = "sender_id"
        case body
        case localID = "local_id"
    }
}

struct Draft: Codable, Sendable {
    let conversation: UUID
    let body: String
}
