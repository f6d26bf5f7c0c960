import Glibc

/// IP addresses with their leading bits in common. Addresses of version 4 are separate from those of version 6.
package struct NetworkRange: Sendable, Equatable {
    let isVersion4: Bool
    let bytes: [UInt8]
    let bits: Int

    /// - Parameter text: an address, or an address, `/` and the number of bits.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let bytes = NetworkAddress(parts[0])?.bytes else { return nil }
        let most = bytes.count * 8
        guard let bits = parts.count == 2 ? Int(parts[1]) : most, (0...most).contains(bits) else { return nil }
        self.init(bytes, bits)
    }

    init(_ bytes: [UInt8], _ bits: Int) {
        isVersion4 = bytes.count == 4
        self.bytes = bytes
        self.bits = bits
    }

    func contains(_ address: NetworkAddress) -> Bool {
        guard address.bytes.count == bytes.count else { return false }
        let whole = bits / 8
        guard address.bytes.prefix(whole) == bytes.prefix(whole) else { return false }
        guard bits % 8 > 0 else { return true }
        let mask = UInt8(truncatingIfNeeded: 0xFF00 >> (bits % 8))
        return address.bytes[whole] & mask == bytes[whole] & mask
    }
}

/// An IP address.
package struct NetworkAddress: Sendable, Equatable {
    /// 4 or 16.
    let bytes: [UInt8]

    init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            bytes = withUnsafeBytes(of: four) { Array($0) }
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            bytes = withUnsafeBytes(of: six) { Array($0) }
        } else {
            return nil
        }
    }

    /// Returns the address and port of a socket address; nil if it is not IP.
    static func of(_ socket: UnsafeRawBufferPointer) -> (address: NetworkAddress, port: Int)? {
        guard socket.count >= MemoryLayout<sockaddr_in>.size else { return nil }
        let port = Int(socket[2]) << 8 | Int(socket[3])
        switch Int32(socket.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET: return (NetworkAddress(bytes: Array(socket[4..<8])), port)
        case AF_INET6 where socket.count >= 24: return (NetworkAddress(bytes: Array(socket[8..<24])), port)
        default: return nil
        }
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }
}

extension NetworkAddress {
    /// The reason why no host on the internet has this address; nil if one may.
    ///
    /// An address is public only if it is known to be: of version 6 only 2000::/3 is assigned (IANA, "IPv6 Global Unicast Address
    /// Assignments"), and forms that embed an address of version 4 lead wherever that one does.
    package var problem: String? {
        for (range, words) in bytes.count == 4 ? Self.version4 : Self.version6 where range.contains(self) {
            return words
        }
        if bytes.count == 16, bytes[0] & 0xE0 != 0x20 { return "an address that nobody was given" }
        return nil
    }

    /// IANA, "IPv4 Special-Purpose Address Registry" (RFC 6890), and multicast (RFC 5771).
    private static let version4 = table([
        ("0.0.0.0/8", "an address of this machine"), ("10.0.0.0/8", "a private address"),
        ("100.64.0.0/10", "an address of a provider's own network"), ("127.0.0.0/8", "an address of this machine"),
        ("169.254.0.0/16", "a link-local address, where clouds keep their metadata"),
        ("172.16.0.0/12", "a private address"), ("192.0.0.0/24", "a reserved address"),
        ("192.0.2.0/24", "an address for documentation"), ("192.88.99.0/24", "a relay of 6to4"),
        ("192.168.0.0/16", "a private address"), ("198.18.0.0/15", "an address for measurements"),
        ("198.51.100.0/24", "an address for documentation"), ("203.0.113.0/24", "an address for documentation"),
        ("224.0.0.0/4", "a multicast address"), ("240.0.0.0/4", "a reserved address"),
    ])

    /// IANA, "IPv6 Special-Purpose Address Registry"; addresses outside of 2000::/3 are listed for the description.
    private static let version6 = table([
        ("::/128", "an address of this machine"), ("::1/128", "an address of this machine"),
        ("::ffff:0:0/96", "an address of version 4 in the form of version 6"),
        ("::/96", "an address of version 4 in the form of version 6"),
        ("64:ff9b::/96", "an address that NAT64 translates"), ("64:ff9b:1::/48", "an address that NAT64 translates"),
        ("100::/64", "an address that leads nowhere"), ("2001::/23", "a reserved address"),
        ("2001:db8::/32", "an address for documentation"), ("2002::/16", "an address of 6to4"),
        ("3fff::/20", "an address for documentation"), ("fc00::/7", "a private address"),
        ("fe80::/10", "a link-local address"), ("fec0::/10", "a private address"), ("ff00::/8", "a multicast address"),
    ])

    private static func table(_ rows: [(String, String)]) -> [(NetworkRange, String)] {
        rows.map { text, words in
            guard let range = NetworkRange(text) else { preconditionFailure("\(text) is no network") }
            return (range, words)
        }
    }
}
