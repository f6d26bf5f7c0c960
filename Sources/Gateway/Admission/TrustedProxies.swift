import HTTP

/// The peers that may name the clients they forward for (`http.trusted_proxies`).
package struct TrustedProxies: Sendable {
    /// A block of addresses: `10.0.0.0/8`, `fd00::/8`, or one address.
    struct Network: Sendable {
        private let high: UInt64
        private let low: UInt64
        private let highMask: UInt64
        private let lowMask: UInt64

        /// Nil if `text` is not a block of addresses.
        init?(_ text: Substring) {
            let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let address = IPAddress(String(parts[0])) else { return nil }
            let bits = address.isVersion4 ? 32 : 128
            let given = parts.count == 2 ? Int(parts[1]) : bits
            guard let given, (0...bits).contains(given) else { return nil }
            let length = given + 128 - bits
            highMask = length >= 64 ? .max : ~(UInt64.max >> UInt64(length))
            lowMask = length <= 64 ? 0 : ~(UInt64.max >> UInt64(length - 64))
            high = address.high & highMask
            low = address.low & lowMask
        }

        func contains(_ address: IPAddress) -> Bool {
            address.high & highMask == high && address.low & lowMask == low
        }
    }

    private let networks: [Network]
    /// Includes all programs that may open the hub's Unix domain socket.
    private let includesUnix: Bool

    /// - Parameter words: addresses, networks and `unix`; others are ignored.
    package init(_ words: [String] = []) {
        includesUnix = words.contains("unix")
        networks = words.compactMap { Network(Substring($0)) }
    }

    var isEmpty: Bool { networks.isEmpty && !includesUnix }

    /// - Parameter address: nil for a Unix domain socket.
    func contains(_ address: IPAddress?) -> Bool {
        guard let address else { return includesUnix }
        return networks.contains { $0.contains(address) }
    }

    /// The client that a trusted peer forwards for. Every proxy appends its caller to `X-Forwarded-For`, so the first
    /// entry from the right that is not one of our proxies is the client, and everything to its left is the client's
    /// claim. Nil if the header names no client.
    func client(in header: String) -> IPAddress? {
        var nearest: IPAddress?
        for entry in header.split(separator: ",").reversed() {
            guard let address = Self.address(entry.trimmingSpaces) else { break }
            nearest = address
            if !contains(address) { break }
        }
        return nearest
    }

    /// Parses an entry, to which some proxies add the port: `192.0.2.1:49152`, `[2001:db8::1]:49152`.
    private static func address(_ entry: Substring) -> IPAddress? {
        if entry.hasPrefix("[") {
            return IPAddress(String(entry.dropFirst().prefix { $0 != "]" }))
        }
        if let colon = entry.firstIndex(of: ":"), colon == entry.lastIndex(of: ":") {
            return IPAddress(String(entry[..<colon]))
        }
        return IPAddress(String(entry))
    }
}

extension Substring {
    fileprivate var trimmingSpaces: Substring {
        var text = self
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}

/// The other end of a connection: the socket's peer, or the client that a trusted proxy forwards for.
struct Peer {
    /// Nil for a Unix domain socket, and for a peer that is gone.
    let address: IPAddress?
    /// True if a proxy named the address, or is a proxy that names no client.
    let isBehindProxy: Bool

    init(address: IPAddress?, isBehindProxy: Bool) {
        self.address = address
        self.isBehindProxy = isBehindProxy
    }

    /// - Parameter head: of the request that came by the socket.
    init(of fd: Int32, _ head: HTTPHead, trusting proxies: TrustedProxies) {
        self.init(of: fd, forwarded: head.field("x-forwarded-for"), trusting: proxies)
    }

    /// - Parameter forwarded: `x-forwarded-for` of the request that came by the socket.
    init(of fd: Int32, forwarded: String?, trusting proxies: TrustedProxies) {
        let socket = IPAddress(peerOf: fd)
        guard !proxies.isEmpty, proxies.contains(socket) else {
            address = socket
            isBehindProxy = false
            return
        }
        address = forwarded.flatMap { proxies.client(in: $0) }
        isBehindProxy = true
    }

    /// For the log and for counting failures; empty if there is no address.
    var text: String { address?.text ?? "" }
}
