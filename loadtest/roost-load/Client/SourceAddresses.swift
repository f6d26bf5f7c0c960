import Glibc

/// The loopback addresses that sockets come from, each in its turn: 127.0.1.2 and on.
struct SourceAddresses {
    /// An address has 28,000 ports for outgoing connections; those of the last run may still be waiting.
    private static let socketsPerAddress = 10_000
    let count: Int

    /// - Parameter stated: how many were asked for; zero means as many as the sockets need.
    init(stated: Int, sockets: Int) {
        count = stated > 0 ? stated : (sockets + Self.socketsPerAddress - 1) / Self.socketsPerAddress
    }

    subscript(number: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = (0x7F00_0102 as UInt32 + UInt32(number % max(1, count))).bigEndian
        return address
    }
}
