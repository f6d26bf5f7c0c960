import Hub
import Wire

/// One of the servers that requests are sent to. Two servers share nothing: no connection, no pause.
enum ServerName: Hashable, Sendable {
    case apns(PushEnvironment, isForBroadcasts: Bool)
    case fcm
    /// Google's authorization server, which issues the credentials for FCM.
    case fcmTokens
    /// The push service of a browser's maker, by its origin: `https://HOST[:PORT]`.
    case web(origin: Name)

    init(_ environment: PushEnvironment, isForBroadcasts: Bool = false) {
        self = .apns(environment, isForBroadcasts: isForBroadcasts)
    }

    init(_ target: Push.Target) {
        switch target {
        case .device(let destination):
            switch destination.kind {
            case .apns: self.init(destination.environment)
            case .fcm: self = .fcm
            case .web: self = .web(origin: Name(Self.origin(of: destination.token.text)))
            }
        case .channel(_, let environment, _): self.init(environment, isForBroadcasts: true)
        }
    }

    /// The scheme and the authority of a URL: everything before the path.
    private static func origin(of url: String) -> String {
        let authority = url.utf8.dropFirst("https://".utf8.count)
        let end = authority.firstIndex { "/?#".utf8.contains($0) } ?? authority.endIndex
        return String(decoding: url.utf8[..<end], as: UTF8.self)
    }

    var environment: PushEnvironment? { if case .apns(let environment, _) = self { environment } else { nil } }

    var isForBroadcasts: Bool { if case .apns(_, true) = self { true } else { false } }

    /// The server that knows the tokens unknown to this one. Nil for broadcasts: a channel names its environment.
    var counterpart: ServerName? {
        guard case .apns(let environment, false) = self else { return nil }
        return ServerName(environment.other)
    }
}

extension ServerName: CustomStringConvertible {
    var description: String {
        switch self {
        case .apns(let environment, let isForBroadcasts): environment.rawValue + (isForBroadcasts ? " broadcasts" : "")
        case .fcm: "fcm"
        case .fcmTokens: "fcm tokens"
        case .web(let origin): String(origin.text.dropFirst("https://".count))
        }
    }
}
