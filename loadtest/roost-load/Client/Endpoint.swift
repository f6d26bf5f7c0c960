import Glibc

/// The target as the sockets see it: an address, and the request that opens a WebSocket there.
struct Endpoint {
    let target: Target
    let address: sockaddr_in
    let request: [UInt8]

    init(_ target: Target) throws {
        self.target = target
        request = target.request
        address = try Self.resolve(target.host, target.port)
    }

    /// Loopback takes any 127.x as a source, so that more sockets fit than one address has ports.
    var isLoopback: Bool { UInt32(bigEndian: address.sin_addr.s_addr) >> 24 == 127 }

    /// Whether the host is an address already, which certificates state apart from names.
    var isNamedByAddress: Bool { target.host.allSatisfy { $0.isNumber || $0 == "." } }

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
