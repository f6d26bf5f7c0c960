import Glibc

/// The address at a connection's other end, in 16 bytes: of IPv4 ones in the form that IPv6 has for them (RFC 4291,
/// section 2.5.5.2).
struct SocketPeer {
    private var address = in6_addr()

    /// Nil where the connection has no address: its peer is gone, or it is no connection of a network.
    init?(of fd: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isKnown = withUnsafeMutableBytes(of: &storage) { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { getpeername(fd, $0.baseAddress, &length) == 0 }
        }
        guard isKnown else { return nil }
        withUnsafeBytes(of: storage) { from in
            withUnsafeMutableBytes(of: &address) { to in
                switch Int32(storage.ss_family) {
                case AF_INET6: to.copyBytes(from: from[8..<24])
                case AF_INET:
                    to[10] = 0xFF
                    to[11] = 0xFF
                    for index in 0..<4 { to[12 + index] = from[4 + index] }
                default: break
                }
            }
        }
        guard [AF_INET, AF_INET6].contains(Int32(storage.ss_family)) else { return nil }
    }

    /// As people write it: 192.0.2.1, 2001:db8::1.
    var text: String {
        var address = address
        let isMapped = withUnsafeBytes(of: &address) {
            $0.prefix(10).allSatisfy { $0 == 0 } && $0[10] == 0xFF && $0[11] == 0xFF
        }
        return withUnsafeBytes(of: &address) { bytes in
            withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
                let from = UnsafeRawBufferPointer(rebasing: isMapped ? bytes[12...] : bytes[...])
                guard let base = buffer.baseAddress,
                    inet_ntop(isMapped ? AF_INET : AF_INET6, from.baseAddress, base, socklen_t(INET6_ADDRSTRLEN)) != nil
                else { return "" }
                return String(cString: base)
            }
        }
    }
}
