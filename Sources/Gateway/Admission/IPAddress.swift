import Glibc

/// An IP address of either version; IPv4 in its IPv6-mapped form (RFC 4291, section 2.5.5.2).
package struct IPAddress: Hashable {
    let high: UInt64
    let low: UInt64

    private static let mapped: UInt64 = 0xFFFF_0000_0000

    private init(version4 number: UInt32) {
        high = 0
        low = Self.mapped | UInt64(number)
    }

    private init(version6 bytes: some Sequence<UInt8>) {
        let number = bytes.reduce(UInt128(0)) { $0 << 8 | UInt128($1) }
        high = UInt64(truncatingIfNeeded: number >> 64)
        low = UInt64(truncatingIfNeeded: number)
    }

    /// Nil if `text` is not an address.
    package init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self.init(version4: UInt32(bigEndian: four.s_addr))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self.init(version6: withUnsafeBytes(of: six) { Array($0) })
        } else {
            return nil
        }
    }

    /// Nil if the peer is gone, or its socket is not an internet socket.
    init?(peerOf fd: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isKnown = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { getpeername(fd, $0.baseAddress, &length) == 0 }
        }
        guard isKnown else { return nil }
        let bytes = withUnsafeBytes(of: storage) { Array($0.prefix(24)) }
        switch Int32(storage.ss_family) {
        case AF_INET: self.init(version4: bytes[4..<8].reduce(0) { $0 << 8 | UInt32($1) })
        case AF_INET6: self.init(version6: bytes[8..<24])
        default: return nil
        }
    }

    var isVersion4: Bool { high == 0 && low >> 32 == 0xFFFF }

    /// In the notation of RFC 5952.
    var text: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            guard let base = buffer.baseAddress else { return "" }
            if isVersion4 {
                var four = in_addr(s_addr: UInt32(truncatingIfNeeded: low).bigEndian)
                inet_ntop(AF_INET, &four, base, socklen_t(buffer.count))
            } else {
                var six = (high.bigEndian, low.bigEndian)
                inet_ntop(AF_INET6, &six, base, socklen_t(buffer.count))
            }
            return String(cString: base)
        }
    }
}

/// A connection's source as far as limits go: an IPv4 address, or the /64 network of an IPv6 address, in which a single
/// host has as many addresses as it likes (RFC 4291, section 2.5.1; RFC 6177).
package struct PeerAddress: Hashable {
    /// The network's 64 bits. IPv4 addresses have those of `0:ffff::/32`, which is reserved (RFC 4291, section 4).
    private let number: UInt64

    package init(_ address: IPAddress) {
        number = address.isVersion4 ? address.low : address.high
    }
}
