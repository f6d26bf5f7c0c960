#if os(Linux)
    import Foundation

    /// A request in the parts that libwebsockets wants.
    struct SocketTarget: Sendable {
        let isTLS: Bool
        /// What to resolve.
        let address: String
        let port: Int32
        /// The Host header.
        let host: String
        let path: String
        let headers: [(name: String, value: String)]
        let maximumMessageBytes: Int

        init?(_ request: WebSocketRequest) {
            guard let parts = URLComponents(url: request.url, resolvingAgainstBaseURL: true),
                let host = parts.percentEncodedHost, !host.isEmpty
            else { return nil }
            isTLS = parts.scheme == "wss"
            // An IPv6 address stands in brackets in a URL and a header (RFC 3986, section 3.2.2), and nowhere else.
            address = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
            port = Int32(clamping: parts.port ?? (isTLS ? 443 : 80))
            self.host = parts.port.map { "\(host):\($0)" } ?? host
            path = parts.percentEncodedPath + (parts.percentEncodedQuery.map { "?" + $0 } ?? "")
            headers = request.headers
            maximumMessageBytes = request.maximumMessageBytes
        }
    }
#endif
