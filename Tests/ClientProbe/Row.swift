/// The rows of the tests' tables.
struct Row: Codable, Identifiable, Sendable {
    let id: Int
    var body: String?
}
