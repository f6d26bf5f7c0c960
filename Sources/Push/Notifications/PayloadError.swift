/// Why something cannot be a payload.
package enum PayloadError: Error, Equatable, CustomStringConvertible {
    case tooLarge(bytes: Int, limit: Int)
    /// `content-state` or `attributes` must be a JSON object, because an app decodes it into a struct.
    case noObject(key: String)
    /// An alert without a title or a body.
    case badAlert
    /// A relevance score that is no number.
    case badRelevanceScore
    /// Browsers have none.
    case noActivities

    package var description: String {
        switch self {
        case .tooLarge(let bytes, let limit):
            "The payload has \(bytes) bytes and the push service takes \(limit): make the content smaller."
        case .noObject(let key): "\(key) is not a JSON object: send an object, such as {\"unread\":3}."
        case .badAlert:
            "alert is not an object with a title and a body, each a text or an object with a loc-key: send both."
        case .noActivities: "A browser shows no Live Activities."
        case .badRelevanceScore: "relevance-score is not a finite number: send one, such as 50."
        }
    }
}

/// The most bytes of JSON that services take (Apple: "Generating a remote notification"; "Sending
/// broadcast push notification requests to APNs"; Firebase: "About FCM messages"; RFC 8291, section 4).
package enum PayloadLimit {
    /// For a push to one device or one activity.
    package static let device = 4096
    /// For a broadcast to a channel.
    package static let channel = 5120
    /// Of what a message to Android shows and carries.
    package static let fcm = 4096
    /// Of plain text for a browser: what is left of 4,096 bytes when it is encrypted.
    package static let web = 3993
}
