import HTTP
import Wire

/// The paths of the API for backends, below `/api` and `/realtime/v1/api`.
enum ServerRoute: Equatable {
    case channels
    case channel(topic: String)
    case presence(topic: String)
    case typing(topic: String)
    case stats
    case user(Name)
    case disconnect(user: Name)
    case unsubscribe(user: Name)
    case refresh(user: Name)

    private static let prefixes = ["/realtime/v1/api/", "/api/"]

    /// Nil if the path does not belong to this API. Topics and users may contain slashes; only the text after the last
    /// one is checked for a word of the API.
    init?(path: String) {
        guard let prefix = Self.prefixes.first(where: { path.utf8.starts(with: $0.utf8) }) else { return nil }
        let rest = Substring(path.utf8.dropFirst(prefix.utf8.count))
        switch rest {
        case "channels": self = .channels
        case "stats": self = .stats
        default:
            if let (topic, word) = Self.splitPath(of: rest, below: "channels/", words: ["presence", "typing"]) {
                switch word {
                case "presence": self = .presence(topic: topic)
                case "typing": self = .typing(topic: topic)
                default: self = .channel(topic: topic)
                }
            } else if let (user, word) = Self.splitPath(
                of: rest, below: "users/", words: ["disconnect", "unsubscribe", "refresh"])
            {
                switch word {
                case "disconnect": self = .disconnect(user: Name(user))
                case "unsubscribe": self = .unsubscribe(user: Name(user))
                case "refresh": self = .refresh(user: Name(user))
                default: self = .user(Name(user))
                }
            } else {
                return nil
            }
        }
    }

    private static func splitPath(of path: Substring, below prefix: String, words: [String]) -> (String, String?)? {
        guard path.utf8.starts(with: prefix.utf8) else { return nil }
        let rest = Substring(path.utf8.dropFirst(prefix.utf8.count))
        guard !rest.isEmpty else { return nil }
        for word in words where rest.utf8.count > word.utf8.count + 1 && rest.hasSuffix("/" + word) {
            return (String(rest.utf8.dropLast(word.utf8.count + 1)) ?? "", word)
        }
        return (String(rest), nil)
    }

    var method: HTTPRequest.Method {
        switch self {
        case .disconnect, .unsubscribe, .refresh: .post
        default: .get
        }
    }
}
