package import Foundation

/// Opens WebSocket connections. All differences between platforms are behind this protocol.
package protocol WebSocketTransport: Sendable {
    /// Opens a connection, and returns once its upgrade was answered. Throws `.cancelled` if the calling task is
    /// cancelled.
    func open(_ request: WebSocketRequest) async throws(TransportFailure) -> any WebSocketConnection
}

/// The target of a connection.
package struct WebSocketRequest: Sendable {
    /// `ws` or `wss`.
    package let url: URL
    /// The headers of the upgrade; names are in lower case.
    package let headers: [(name: String, value: String)]
    /// The longest message that the hub may send, in bytes.
    package let maximumMessageBytes: Int
}

/// An open WebSocket connection. Callable from any thread.
package protocol WebSocketConnection: Sendable {
    /// Queues a message, and returns at once. Messages are sent in this order; unsent ones are lost with the
    /// connection.
    func send(_ frame: WebSocketFrame)
    /// The number of bytes that are queued and not accepted by the network yet.
    var pendingBytes: Int { get }
    /// Waits for the next message. Throws the reason once the connection has ended. One task may wait at a time.
    func receive() async throws(TransportFailure) -> WebSocketFrame
    /// Sends the queued messages and closes with code 1000; `receive` throws when that is done.
    func close()
}

/// One message of a WebSocket.
package enum WebSocketFrame: Sendable, Equatable {
    case text([UInt8])
    case binary([UInt8])

    /// The length of the message, in bytes.
    package var count: Int {
        switch self {
        case .text(let bytes), .binary(let bytes): bytes.count
        }
    }
}

/// The reason why a connection could not be opened, or ended.
package enum TransportFailure: Error, Sendable, Equatable {
    /// The upgrade was answered with this HTTP status.
    case refused(status: Int)
    /// The hub closed the connection with this code (RFC 6455, section 7.4); 1006 stands for none.
    case closed(code: Int)
    /// There is no connection, or it broke. The text is one sentence, without the token.
    case unreachable(String)
    /// This side ended the connection.
    case cancelled

    /// Whether the hub forbids reconnecting: codes from 4000 on are private agreements (RFC 6455, section 7.4.2), which
    /// supabase-swift treats as final, too.
    package var isFinal: Bool {
        if case .closed(let code) = self { return code >= 4000 }
        return false
    }

    /// The failure in one sentence for a log or a UI.
    package var reason: String {
        switch self {
        case .refused(401): "The hub refuses the token."
        case .refused(let status): "The hub refuses the connection with HTTP status \(status)."
        case .closed(1006): "The connection broke."
        case .closed(1009): "A message was too large for the hub."
        case .closed(1012): "The hub restarts."
        case .closed(let code): "The hub closed the connection with code \(code)."
        case .unreachable(let what): what
        case .cancelled: "The connection was closed."
        }
    }
}

/// The hub's address: the URL to connect to, derived from any URL that a developer has at hand.
package struct HubEndpoint: Sendable {
    /// A URL that cannot be a hub's; the description gives the expected form.
    package struct Invalid: Error, CustomStringConvertible {
        package let description: String
    }

    private let components: URLComponents

    /// Accepts URLs of `ws`, `wss`, `http` and `https`, without a path, with `/realtime/v1`, or with the whole path.
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

    /// The upgrade request of a connection. The token is in a header, which proxies do not log.
    package func upgradeRequest(_ token: String, _ configuration: RoostClient.Configuration) -> WebSocketRequest {
        var components = components
        var items = components.queryItems ?? []
        items.append(URLQueryItem(name: "vsn", value: "2.0.0"))
        if let apiKey = configuration.apiKey { items.append(URLQueryItem(name: "apikey", value: apiKey)) }
        components.queryItems = items
        return WebSocketRequest(
            url: components.url ?? URL(filePath: "/"),
            // A gateway reads `apikey`. The hub prefers `x-api-key`, which is omitted when a project's key is in the
            // URL, so that the original server, which reads no other header, sees the key.
            headers: [
                configuration.apiKey == nil ? ("x-api-key", token) : ("authorization", "Bearer " + token)
            ],
            maximumMessageBytes: configuration.maximumMessageBytes)
    }
}
