import Hub

/// One of the services that notifications go to. Nothing is shared between two: not a connection, not a pause.
struct ServerName: Hashable, Sendable {
    let environment: PushEnvironment
    let isForBroadcasts: Bool

    init(_ target: Push.Target) {
        environment = target.environment
        isForBroadcasts =
            switch target {
            case .device: false
            case .channel: true
            }
    }
}

extension ServerName: CustomStringConvertible {
    var description: String { environment.rawValue + (isForBroadcasts ? " broadcasts" : "") }
}
