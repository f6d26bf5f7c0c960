import CWebSockets
import Logging
import Synchronization

/// What libwebsockets keeps for an event loop: a context on its libuv loop, with a virtual host for connections without TLS
/// and, where the hub has a certificate, one for those with TLS.
struct LWSContext {
    private var plain: OpaquePointer?
    private var encrypted: OpaquePointer?

    /// Not open yet.
    init() {}

    /// - Parameter owner: the loop that `lwsCallback` calls, from in here on.
    init(on libuv: LibuvLoop, owner: EventLoop, hasTLS: Bool) {
        let data = Unmanaged.passUnretained(owner).toOpaque()
        guard let context = roost_context_create(libuv.pointer, data, hasTLS ? 1 : 0) else {
            preconditionFailure("libwebsockets made no context; install libwebsockets-evlib-uv")
        }
        plain = roost_vhost_create(context, "roost", lwsCallback, 0)
        guard hasTLS else { return }
        encrypted = roost_vhost_create(context, "roost-tls", lwsCallback, 1)
        precondition(encrypted != nil, "libwebsockets has no TLS here; install Debian's package of it")
    }

    /// The hub ends TLS on the port of the WebSockets.
    var hasTLS: Bool { encrypted != nil }

    /// Gives a connection to lws from its beginning, which ends TLS and reads its HTTP.
    func adoptEncrypted(_ fd: Int32) { lws_adopt_socket_vhost(encrypted, fd) }

    /// Gives a connection without TLS to lws, with what is to be taken for the first bytes that came by it.
    func adopt(_ fd: Int32, _ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { bytes in
            lws_adopt_socket_vhost_readbuf(
                plain, fd, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
        }
    }
}

/// The certificate that OpenSSL presents in the handshakes of one loop. Confined to its thread.
final class PresentedCertificate {
    /// For OpenSSL, which looks here in every handshake.
    private let place: UnsafeMutablePointer<OpaquePointer?>
    /// What `place` points to lives as long as this.
    private var certificate: Certificate?

    init(_ certificate: Certificate?) {
        self.certificate = certificate
        place = .allocate(capacity: 1)
        place.initialize(to: certificate?.pointer)
    }

    /// For handshakes from now on.
    func present(_ certificate: Certificate) {
        self.certificate = certificate
        place.pointee = certificate.pointer
    }

    /// lws has made a server's SSL_CTX. Nonzero: it cannot be used.
    func prepare(_ context: UnsafeMutableRawPointer?) -> Int32 { roost_tls_prepare(context, place) }
}

/// lws' own messages, which are about single misbehaving connections: kept for debugging, never on the operator's screen.
enum LWSLog {
    private static let logger = Mutex<Logger?>(nil)

    static func route(to target: Logger) {
        logger.withLock { $0 = target }
        roost_log_to { _, line in
            guard let line else { return }
            let text = String(cString: line)
            let first = text.split(separator: "\n").first ?? ""
            LWSLog.logger.withLock { $0 }?.debug("libwebsockets: \(LWSLog.withoutSecrets(first))")
        }
    }

    /// lws may quote what a peer sent, and that may be a token: its lines end where a query, an assignment or a JWT
    /// (RFC 7515: all of them begin with `{"` in base 64) would begin.
    private static func withoutSecrets(_ line: Substring) -> String {
        let marks = [line.firstIndex { $0 == "?" || $0 == "=" }, line.firstRange(of: "eyJ")?.lowerBound]
        guard let end = marks.compactMap({ $0 }).min() else { return String(line) }
        return line[..<end] + "…"
    }
}
