/// Whose address a connection came from, as far as limits go: an IPv4 address, or the /64 network of an IPv6 one, of
/// which a single host has as many addresses as it likes (RFC 4291, section 2.5.1; RFC 6177).
struct PeerAddress: Hashable {
    /// The network's 64 bits. IPv4 addresses have those of `0:ffff::/32`, which is reserved (RFC 4291, section 4).
    private let number: UInt64

    init(_ address: IPAddress) {
        number = address.isVersion4 ? address.low : address.high
    }
}
