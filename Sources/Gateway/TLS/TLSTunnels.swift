import CWebSockets
import Hub

/// One connection whose TLS ends here: its client's own socket, and a plain end that is read and written as a socket without TLS is.
///
/// What goes to many is sent straight to the client (`SocketWriter`); all else goes by the plain end.
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
    /// For OpenSSL, which looks here in every handshake.
    private let place: UnsafeMutablePointer<OpaquePointer?>
    /// What `place` points to lives as long as this.
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

    /// For handshakes from now on.
    func present(_ certificate: Certificate) {
        self.certificate = certificate
        place.pointee = certificate.pointer
    }

    /// Takes a connection over whose client speaks TLS.
    ///
    /// - Returns: with the plain end, which is the caller's; nil where there is no room for one, and the socket stays the caller's.
    func open(_ client: Int32) -> (tunnel: TLSTunnel, plain: Int32)? {
        var plain: Int32 = -1
        return roost_tunnels_open(tunnels, client, &plain).map { (TLSTunnel($0, client: client), plain) }
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
