/// The reason why something cannot be a payload.
package enum PayloadError: Error, Equatable, CustomStringConvertible {
    case tooLarge(bytes: Int, limit: Int)
    /// `content-state` or `attributes` must be a JSON object, because an app decodes it into a struct.
    case noObject(key: String)
    /// An alert without a title or a body.
    case badAlert
    /// A relevance score that is not a number.
    case badRelevanceScore
    /// Browsers have no Live Activities.
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

/// The most bytes of JSON that services accept (Apple: "Generating a remote notification"; "Sending broadcast push notification
/// requests to APNs"; Firebase: "About FCM messages"; RFC 8291, section 4).
package enum PayloadLimit {
    /// For a push to one device or one activity.
    package static let device = 4096
    /// For a broadcast to a channel.
    package static let channel = 5120
    /// For the visible and the data part of a message to Android.
    package static let fcm = 4096
    /// For the plain text of a message to a browser: the rest of 4,096 bytes after encryption.
    package static let web = 3993
}
