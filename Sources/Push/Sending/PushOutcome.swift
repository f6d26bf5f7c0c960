import Hub

/// The outcome of a notification. Every notification sent has exactly one.
package enum PushOutcome: Sendable, Equatable {
    /// The service accepted it.
    case delivered
    /// The app is gone from the phone, or the token is an old one. Drop the token if it was registered before `since`, in milliseconds
    /// since 1970.
    case unregistered(since: Int64?)
    /// The service refused it for good; the token may well be valid.
    case refused(status: Int, reason: String)
    /// The token is malformed, or belongs to the other environment or to another app.
    case badToken(reason: String)
    /// A later notification of its lane replaced it before it left.
    case superseded
    /// Its deadline passed before the service accepted it.
    case expired
    /// The queue was full.
    case overflow
    /// The payload has more bytes than the service accepts; it was not sent.
    case tooLarge(bytes: Int, limit: Int)
    /// It left, but whether it arrived is unknown.
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
    /// Whether a service's statement about a token concerns it as registered. A token that was registered again after it was declared
    /// dead is alive.
    ///
    /// The statement `DropDestination` makes the same comparison for the rows that it deletes.
    ///
    /// - Parameters:
    ///   - since: the service's statement, in milliseconds since 1970; nil if it makes none.
    ///   - moment: the time of the last registration, in milliseconds since 1970.
    static func isGone(since: Int64?, registeredAt moment: Int64) -> Bool { since.map { moment < $0 } ?? true }
}
