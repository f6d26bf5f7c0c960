import CWebSockets

/// Ends the TLS of a loop's connections: each has a plain end, which the loop reads and writes as it does a socket without TLS
/// (`CWebSockets.h`).
///
/// Confined to its loop's thread. Lives as long as the process.
final class TLSTunnels {
    private let tunnels: OpaquePointer
    /// For OpenSSL, which looks here in every handshake.
    private let place: UnsafeMutablePointer<OpaquePointer?>
    /// What `place` points to lives as long as this.
    private var certificate: Certificate

    init(on libuv: LibuvLoop, owner: EventLoop, presenting certificate: Certificate) {
        self.certificate = certificate
        place = .allocate(capacity: 1)
        place.initialize(to: certificate.pointer)
        let data = Unmanaged.passUnretained(owner).toOpaque()
        let tunnels = roost_tunnels_create(
            libuv.pointer, place, { EventLoop.of($0)?.counters.turnBegins() }, data)
        guard let tunnels else { preconditionFailure("OpenSSL does not know the suites of docs/tls.md") }
        self.tunnels = tunnels
    }

    /// For handshakes from now on.
    func present(_ certificate: Certificate) {
        self.certificate = certificate
        place.pointee = certificate.pointer
    }

    /// Takes a connection over whose client speaks TLS.
    ///
    /// - Returns: its plain end; nil where there is no room for one, and the socket stays the caller's.
    func open(_ client: Int32) -> Int32? {
        let plain = roost_tunnels_open(tunnels, client)
        return plain < 0 ? nil : plain
    }

    /// A turn of the loop is over: handshakes that waited for the next may go on.
    func beginTurn() { roost_tunnels_begin_turn(tunnels) }

    /// Once a second: ends what takes too long with the last of it.
    func tick() { roost_tunnels_tick(tunnels) }

    /// Descriptors run short: ends what the loop is done with.
    ///
    /// - Returns: whether there was any.
    func makeRoom() -> Bool { roost_tunnels_make_room(tunnels) > 0 }
}
