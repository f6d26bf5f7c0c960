import Hub

/// How APNs is reached.
package struct APNsConfiguration: Sendable {
    package var key: ProviderKey
    /// Another server for both environments, such as a stand-in or a proxy: `https://HOST:PORT`.
    package var url: String?
    /// Another server for the sandbox alone; nil for `url`.
    package var sandboxURL: String?
    /// The server for channel broadcasts, in both environments; nil for the same server as everything else. (Apple's
    /// prose and samples disagree about the host.)
    package var broadcastURL: String?
    /// Certificates, in PEM, to trust instead of the system's.
    package var caFile: String?
    /// The most notifications that wait or are in flight.
    package var queue = 10_000
    /// Connections to each server.
    package var connections = 1
    /// The most requests in flight on one connection; the peer's SETTINGS may allow fewer.
    package var inFlight = 500
    package var connectTimeout: Duration = .seconds(10)
    /// How long an answer may take, from when the request left.
    package var answerTimeout: Duration = .seconds(20)
    /// How long a connection may take to answer a ping.
    package var pingTimeout: Duration = .seconds(5)
    /// After how long an idle connection is pinged (Apple: an hour).
    package var idlePing: Duration = .seconds(3600)
    /// Whether notifications wait, until their deadline, when APNs refuses the key. Otherwise they end
    /// `.refused`, which is for whoever sends by hand.
    package var waitsWhenKeyIsRefused = true

    package init(key: ProviderKey) {
        self.key = key
    }

    /// Whether each environment has a server of its own. One server for both cannot be asked which one a token belongs to.
    package var hasTwoHosts: Bool { origin(of: ServerName(.sandbox)) != origin(of: ServerName(.production)) }

    /// The origin of a server: what is configured, or port 443 of the hosts in Apple's "Sending notification requests
    /// to APNs".
    func origin(of server: ServerName) -> String {
        let own = server.environment == .sandbox ? sandboxURL ?? url : url
        if let url = server.isForBroadcasts ? broadcastURL ?? own : own {
            return url.hasSuffix("/") ? String(url.dropLast()) : url
        }
        return switch server.environment {
        case .production: "https://api.push.apple.com"
        case .sandbox: "https://api.sandbox.push.apple.com"
        }
    }
}
