/// Why something cannot be a payload.
package enum PayloadError: Error, Equatable, CustomStringConvertible {
    case tooLarge(bytes: Int, limit: Int)
    /// `content-state` or `attributes` must be a JSON object, because an app decodes it into a struct.
    case noObject(key: String)
    case badAlert
    case badRelevanceScore

    package var description: String {
        switch self {
        case .tooLarge(let bytes, let limit):
            "The payload has \(bytes) bytes and Apple takes \(limit): make the content smaller."
        case .noObject(let key): "\(key) is not a JSON object: send an object, such as {\"unread\":3}."
        case .badAlert:
            "alert is not an object with a title and a body, each a text or an object with a loc-key: send both."
        case .badRelevanceScore: "relevance-score is not a finite number: send one, such as 50."
        }
    }
}
