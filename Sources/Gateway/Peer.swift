import HTTP

/// Who is at the other end of a connection: the peer of the socket, or whom a trusted proxy speaks for.
struct Peer {
    /// Nil for a Unix domain socket, and for a peer that is gone.
    let address: IPAddress?
    /// It is named by a proxy, or it is a proxy that names nobody.
    let isBehindProxy: Bool

    /// - Parameter head: of the request that came by the socket.
    init(of fd: Int32, _ head: some RequestHead, trusting proxies: TrustedProxies) {
        let socket = IPAddress(peerOf: fd)
        guard !proxies.isEmpty, proxies.contains(socket) else {
            address = socket
            isBehindProxy = false
            return
        }
        address = head.field("x-forwarded-for").flatMap { proxies.client(in: $0) }
        isBehindProxy = true
    }

    /// For the log and for counting failures; empty where nobody is named.
    var text: String { address?.text ?? "" }
}
