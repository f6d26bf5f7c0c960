package import Hub

extension Push {
    /// Who gets it.
    package enum Target: Sendable, Hashable {
        case device(PushDestination)
        /// Everybody who follows a channel (iOS 18, "Sending broadcast push notification requests to APNs").
        case channel(id: String, environment: PushEnvironment, bundle: String)
    }
}

extension Push.Target {
    package var environment: PushEnvironment {
        switch self {
        case .device(let destination): destination.environment
        case .channel(_, let environment, _): environment
        }
    }

    /// The most bytes of JSON that APNs takes ("Generating a remote notification", "Sending broadcast push notification
    /// requests to APNs").
    package var payloadLimit: Int {
        switch self {
        case .device: 4096
        case .channel: 5120
        }
    }
}
