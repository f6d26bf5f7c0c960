/// What people do in conversations beside reading: rows alone where all is zero.
struct ChatTerms: Codable, Sendable {
    /// Sockets in a conversation; 0 spreads the sockets over `channels` conversations in turn.
    var members = 0
    var conversationsPerSocket = 1
    /// Whether the author of a row is seen typing before it.
    var types = false
    /// The share of the others that broadcast a read receipt.
    var readers = 0.0
    var tracksPresence = false
    /// The share of the sockets that leaves and comes back in a minute.
    var churn = 0.0

    /// Seconds before a row that its author begins to type.
    static let typingLead = 0.3...1.5
    /// Seconds after a row that its readers confirm it.
    static let readingDelay = 0.2...3.0
    /// Seconds that those who leave stay away.
    static let absence = 0.5...8.0
}
