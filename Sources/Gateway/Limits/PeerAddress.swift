import Glibc

/// Whose address a connection came from, as far as limits go: an IPv4 address, or the /64 network of an IPv6 one, of
/// which a single host has as many addresses as it likes (RFC 4291, section 2.5.1; RFC 6177).
struct PeerAddress: Hashable {
    /// The network's 64 bits. IPv4 addresses have those of `0:ffff::/32`, which is reserved (RFC 4291, section 4).
    private let number: UInt64

    /// Nil where the connection has no address, because its peer is gone.
    init?(of fd: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isKnown = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { getpeername(fd, $0.baseAddress, &length) == 0 }
        }
        guard isKnown else { return nil }
        let bytes = withUnsafeBytes(of: storage) { Array($0) }
        switch Int32(storage.ss_family) {
        case AF_INET: self.init(version4: bytes[4..<8])
        case AF_INET6: self.init(version6: bytes[8..<24])
        default: return nil
        }
    }

    init(version4 bytes: ArraySlice<UInt8>) {
        number = Self.number(bytes) | 0xFFFF_0000_0000
    }

    init(version6 bytes: ArraySlice<UInt8>) {
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        if bytes.starts(with: mapped) {
            self.init(version4: bytes.suffix(4))
        } else {
            self.init(network: Self.number(bytes.prefix(8)))
        }
    }

    private init(network: UInt64) {
        number = network
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }
}
