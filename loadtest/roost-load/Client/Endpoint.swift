import Glibc

/// Where the hub is: an address and the request that opens a WebSocket there.
struct Endpoint {
    private(set) var address = sockaddr_in()
    let request: [UInt8]

    /// - Parameter url: `ws://host:port/path`; the version and the token are added to it.
    init(url: String, token: String) throws {
        guard url.hasPrefix("ws://") else { throw LoadFailure("The URL \(url) does not begin with ws://.") }
        let rest = url.dropFirst(5)
        let path = rest.firstIndex(of: "/").map { rest[$0...] } ?? "/realtime/v1/websocket"
        let authority = rest.prefix { $0 != "/" }
        let host = String(authority.prefix { $0 != ":" })
        let port = authority.contains(":") ? UInt16(authority.drop { $0 != ":" }.dropFirst()) : 80
        guard let port, !host.isEmpty else { throw LoadFailure("The URL \(url) has no host and port.") }
        request = Array(
            """
            GET \(path)?vsn=2.0.0&apikey=\(token) HTTP/1.1\r
            Host: \(authority)\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
            Sec-WebSocket-Version: 13\r
            \r\n
            """.utf8)
        address = try Self.resolve(host, port)
    }

    /// Loopback takes any 127.x as a source, so that more sockets fit than one address has ports.
    var isLoopback: Bool { UInt32(bigEndian: address.sin_addr.s_addr) >> 24 == 127 }

    private static func resolve(_ host: String, _ port: UInt16) throws -> sockaddr_in {
        var hints = addrinfo()
        hints.ai_family = AF_INET
        var list: UnsafeMutablePointer<addrinfo>?
        let status = getaddrinfo(host, String(port), &hints, &list)
        guard status == 0, let first = list else {
            throw LoadFailure("The host \(host) has no IPv4 address: \(String(cString: gai_strerror(status))).")
        }
        defer { freeaddrinfo(list) }
        return UnsafeRawPointer(first.pointee.ai_addr).loadUnaligned(as: sockaddr_in.self)
    }
}
