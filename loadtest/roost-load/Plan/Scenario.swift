/// What the sockets do.
enum Scenario: String, Codable, Sendable {
    case idle, fanout, chat, changes, storm, presence, slow, soak

    var primaryLatency: LatencyKind {
        switch self {
        case .idle: .join
        case .fanout, .slow: .broadcast
        case .chat, .changes, .soak: .commit
        case .storm: .back
        case .presence: .presence
        }
    }

    var hasConversations: Bool { self == .chat || self == .changes || self == .soak }
}
