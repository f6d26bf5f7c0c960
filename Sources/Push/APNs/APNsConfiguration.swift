import Hub

/// The configuration of APNs.
package struct APNsConfiguration: Sendable {
    package var key: ProviderKey
    /// Another server for both environments, such as a stand-in or a proxy: `https://HOST:PORT`.
    package var url: String?
    /// Another server for the sandbox alone; nil for `url`.
    package var sandboxURL: String?
    /// The server for channel broadcasts, in both environments; nil for the same server as everything else. (Apple's
    /// prose and samples disagree about the host.)
    package var broadcastURL: String?
    package var limits = PushLimits()

    package init(key: ProviderKey) {
        self.key = key
    }

    /// Whether each environment has a server of its own. One server for both cannot tell which one a token belongs to.
    package var hasTwoHosts: Bool { origin(of: ServerName(.sandbox)) != origin(of: ServerName(.production)) }

    /// The origin of a server: the configured one, or port 443 of the hosts in Apple's "Sending notification requests to APNs".
    func origin(of server: ServerName) -> String {
        let environment = server.environment ?? .production
        let own = environment == .sandbox ? sandboxURL ?? url : url
        if let url = server.isForBroadcasts ? broadcastURL ?? own : own {
            return url.hasSuffix("/") ? String(url.dropLast()) : url
        }
        return switch environment {
        case .production: "https://api.push.apple.com"
        case .sandbox: "https://api.sandbox.push.apple.com"
        }
    }
}
