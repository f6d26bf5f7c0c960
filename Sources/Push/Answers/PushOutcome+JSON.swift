extension PushOutcome {
    /// One word, for logs, metrics and scripts.
    package var name: String {
        switch self {
        case .delivered: "delivered"
        case .unregistered: "unregistered"
        case .refused: "refused"
        case .badToken: "badToken"
        case .superseded: "superseded"
        case .expired: "expired"
        case .overflow: "overflow"
        case .tooLarge: "tooLarge"
        case .unanswered: "unanswered"
        case .stopped: "stopped"
        }
    }
}
