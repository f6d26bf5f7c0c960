import Hub

/// What became of a notification. Each that is sent has exactly one.
package enum PushOutcome: Sendable, Equatable {
    /// The service took it.
    case delivered
    /// The app is gone from the phone, or the token is an old one. The token is to be dropped if it was
    /// registered before `since`, in milliseconds since 1970.
    case unregistered(since: Int64?)
    /// The service refused it for good; the token may well be good.
    case refused(status: Int, reason: String)
    /// The token is not one, or belongs to the other environment or to another app.
    case badToken(reason: String)
    /// A later notification of its lane took its place before it left.
    case superseded
    /// Its deadline passed before the service took it.
    case expired
    /// The queue was full.
    case overflow
    /// The payload has more bytes than the service takes; it was not sent.
    case tooLarge(bytes: Int, limit: Int)
    /// It left, and nobody knows whether it came in.
    case unanswered
    /// The client was stopped before it left.
    case stopped
}

extension PushOutcome {
    /// The outcome in one word, for logs, metrics and scripts.
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

extension PushToken {
    /// Whether what a service says of a token is about it as it was registered. One that was registered again after it was called dead lives.
    ///
    /// The statement `DropDestination` compares the same for the rows that it forgets.
    ///
    /// - Parameters:
    ///   - since: what the service says, in milliseconds since 1970; nil where it says nothing.
    ///   - moment: when it was registered last, in milliseconds since 1970.
    static func isGone(since: Int64?, registeredAt moment: Int64) -> Bool { since.map { moment < $0 } ?? true }
}
