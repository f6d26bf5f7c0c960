import CWebSockets
import Hub

/// One connection whose TLS ends here: the client's own socket, and a plain end that is used like a socket without TLS.
///
/// Deliveries go straight to the client (`SocketWriter`); everything else goes through the plain end.
final class TLSTunnel {
    let pointer: OpaquePointer
    /// The client's own socket; it stays open until the plain end is shut or closed.
    let client: Int32

    fileprivate init(_ pointer: OpaquePointer, client: Int32) {
        self.pointer = pointer
        self.client = client
    }

    deinit { roost_tunnel_release(pointer) }
}

/// Ends the TLS of a loop's connections (`CWebSockets.h`).
///
/// Confined to its loop's thread. Lives as long as the process.
final class TLSTunnels {
    private let tunnels: OpaquePointer
    /// The pointer that OpenSSL reads in every handshake.
    private let place: UnsafeMutablePointer<OpaquePointer?>
    /// Keeps the target of `place` alive.
    private var certificate: Certificate

    init(on libuv: LibuvLoop, owner: EventLoop, presenting certificate: Certificate) {
        self.certificate = certificate
        place = .allocate(capacity: 1)
        place.initialize(to: certificate.pointer)
        let callbacks = roost_tunnel_owner(
            begins: { EventLoop.of($0)?.counters.turnBegins() },
            has_room: { EventLoop.of($0)?.delivery.writable(Slot($1)) },
            user: Unmanaged.passUnretained(owner).toOpaque())
        guard let tunnels = roost_tunnels_create(libuv.pointer, place, callbacks) else {
            preconditionFailure("OpenSSL does not know the suites of docs/tls.md")
        }
        self.tunnels = tunnels
    }

    /// Presents a certificate in future handshakes.
    func present(_ certificate: Certificate) {
        self.certificate = certificate
        place.pointee = certificate.pointer
    }

    /// Takes over a connection whose client speaks TLS.
    ///
    /// - Returns: the tunnel, and the plain end, which belongs to the caller; nil if there are no resources for one,
    ///   and the socket then stays the caller's.
    func open(_ client: Int32) -> (tunnel: TLSTunnel, plain: Int32)? {
        var plain: Int32 = -1
        return roost_tunnels_open(tunnels, client, &plain).map { (TLSTunnel($0, client: client), plain) }
    }

    /// Called after each turn of the loop: handshakes that waited for the next turn may continue.
    func beginTurn() { roost_tunnels_begin_turn(tunnels) }

    /// Called once a second: ends tunnels that take too long with their last output.
    func tick() { roost_tunnels_tick(tunnels) }

    /// Ends tunnels that the loop no longer needs, because descriptors run short.
    ///
    /// - Returns: whether there were any.
    func makeRoom() -> Bool { roost_tunnels_make_room(tunnels) > 0 }
}
