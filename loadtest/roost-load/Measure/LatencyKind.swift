/// What is measured, from when to when.
enum LatencyKind: Int, CaseIterable, Codable, Sendable {
    case commit, schedule, broadcast, sent, typing, presence, join, back

    /// The prefix of its figures.
    var name: String {
        switch self {
        case .commit: "commit"
        case .schedule: "schedule"
        case .broadcast: "broadcast"
        case .sent: "sent"
        case .typing: "typing"
        case .presence: "presence"
        case .join: "join"
        case .back: "back"
        }
    }

    var title: String {
        switch self {
        case .commit: "commit → client"
        case .schedule: "row due → client"
        case .broadcast: "broadcast due → client"
        case .sent: "broadcast sent → client"
        case .typing: "typing due → client"
        case .presence: "presence due → client"
        case .join: "connect → joined"
        case .back: "cut off → joined again"
        }
    }
}
