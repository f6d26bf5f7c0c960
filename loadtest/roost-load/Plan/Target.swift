/// Where the load goes: a WebSocket's URL and what is said at its door.
struct Target: Codable, Sendable {
    let host: String
    let port: UInt16
    let path: String
    let authority: String
    let isSecure: Bool
    /// Whether any certificate will do.
    var isInsecure = false
    /// A file of certificate authorities instead of the system's.
    var authorities: String?
    /// `Sec-WebSocket-Protocol`.
    var subprotocol: String?
    /// What the path ends in: version and token.
    var query = ""

    /// - Parameters:
    ///   - url: `ws://host:port/path` or `wss://…`.
    ///   - stated: a path instead of the URL's.
    init(url: String, path stated: String?) throws {
        let scheme = ["ws://", "wss://"].first { url.hasPrefix($0) }
        guard let scheme else { throw LoadFailure("The URL \(url) does not begin with ws:// or wss://.") }
        isSecure = scheme == "wss://"
        let rest = url.dropFirst(scheme.count)
        path = stated ?? rest.firstIndex(of: "/").map { String(rest[$0...]) } ?? "/realtime/v1/websocket"
        authority = String(rest.prefix { $0 != "/" })
        host = String(authority.prefix { $0 != ":" })
        let number = authority.contains(":") ? UInt16(authority.drop { $0 != ":" }.dropFirst()) : isSecure ? 443 : 80
        guard let number, !host.isEmpty else { throw LoadFailure("The URL \(url) has no host and port.") }
        port = number
    }

    /// Without the token.
    var description: String { "\(isSecure ? "wss" : "ws")://\(authority)\(path)" }

    var request: [UInt8] {
        let separator = query.isEmpty ? "" : path.contains("?") ? "&" : "?"
        var lines = [
            "GET \(path)\(separator)\(query) HTTP/1.1", "Host: \(authority)", "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ]
        if let subprotocol { lines.append("Sec-WebSocket-Protocol: \(subprotocol)") }
        return Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
    }
}
