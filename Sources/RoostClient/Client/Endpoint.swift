package import Foundation

/// Where the hub is, made from whatever URL a developer has at hand.
package struct Endpoint: Sendable {
    /// Why a URL is none of a hub.
    package struct Invalid: Error, CustomStringConvertible {
        package let description: String
    }

    private let components: URLComponents

    /// `ws`, `wss`, `http` and `https`; without a path, with `/realtime/v1`, or with the whole path.
    package init(_ url: URL) throws(Invalid) {
        let schemes = ["ws": "ws", "http": "ws", "wss": "wss", "https": "wss"]
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: true), let host = components.host,
            !host.isEmpty, let scheme = components.scheme.flatMap({ schemes[$0.lowercased()] })
        else {
            throw Invalid(description: "The hub's URL must be like wss://HOST or https://HOST, with a host in it.")
        }
        components.scheme = scheme
        while components.path.hasSuffix("/") { components.path.removeLast() }
        if components.path.isEmpty { components.path = "/realtime/v1" }
        if !components.path.hasSuffix("/websocket") { components.path += "/websocket" }
        components.fragment = nil
        self.components = components
    }

    /// Tokens go in a header, where no log of a proxy has them.
    package func request(_ token: String, _ configuration: RoostClient.Configuration) -> WebSocketRequest {
        var components = components
        var items = components.queryItems ?? []
        items.append(URLQueryItem(name: "vsn", value: "2.0.0"))
        if let apiKey = configuration.apiKey { items.append(URLQueryItem(name: "apikey", value: apiKey)) }
        components.queryItems = items
        return WebSocketRequest(
            url: components.url ?? URL(filePath: "/"),
            // A gateway reads `apikey`; the hub prefers `x-api-key`, which with a project's key in the URL is left out,
            // so that the original server, which reads no other header, sees the key.
            headers: [
                configuration.apiKey == nil ? ("x-api-key", token) : ("authorization", "Bearer " + token)
            ],
            maximumMessageBytes: configuration.maximumMessageBytes)
    }
}
