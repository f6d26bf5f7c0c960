import CLoad
import Glibc

/// One connection of the fleet.
struct ClientSocket {
    enum Phase {
        case closed, connecting, securing, upgrading, joining, ready
        /// It has sent a close frame and waits for the other side to close.
        case leaving
    }
    var descriptor: Int32 = -1
    var phase = Phase.closed
    var session: SecureSession?
    /// The start of a frame whose end has not come yet.
    var partial: [UInt8] = []
    /// What the other side has not taken yet.
    var unsent: [UInt8] = []
    /// How many of the messages that answer its joins have not come yet.
    var answersMissing = 0
    /// Whether it leaves unread what comes, as a slow reader does.
    var isStalled = false
    /// When it was dialled, by `MonotonicClock`.
    var dialled: UInt64 = 0
}

/// TLS for the sockets of a `wss://` target.
final class SecureContext {
    private let raw: OpaquePointer
    private let endpoint: Endpoint

    init(_ endpoint: Endpoint) throws {
        let target = endpoint.target
        guard let raw = roost_tls_context(target.isInsecure ? 0 : 1, target.authorities) else {
            throw LoadFailure("The certificate authorities in \(target.authorities ?? "the system") cannot be used.")
        }
        self.raw = raw
        self.endpoint = endpoint
    }

    deinit { SSL_CTX_free(raw) }

    func session(on descriptor: Int32) throws -> SecureSession {
        let session = roost_tls_open(raw, descriptor, endpoint.target.host, endpoint.isNamedByAddress ? 1 : 0)
        guard let session else { throw LoadFailure("There is no memory for another TLS session.") }
        return SecureSession(session)
    }
}

/// One socket's TLS.
final class SecureSession {
    enum Step {
        case bytes(Int)
        case wantsRead, wantsWrite, ended
        case failed(String)
    }
    private let raw: OpaquePointer

    fileprivate init(_ raw: OpaquePointer) { self.raw = raw }

    deinit { SSL_free(raw) }

    func handshake() -> Step { step(roost_tls_handshake(raw)) }
    func read(_ bytes: UnsafeMutableRawPointer, room: Int) -> Step { step(roost_tls_read(raw, bytes, room)) }
    func write(_ bytes: UnsafeRawPointer, count: Int) -> Step { step(roost_tls_write(raw, bytes, count)) }

    private func step(_ outcome: Int) -> Step {
        switch outcome {
        case 1...: .bytes(outcome)
        case Int(roost_tls_ended): .ended
        case Int(roost_tls_wants_read): .wantsRead
        case Int(roost_tls_wants_write): .wantsWrite
        default: .failed(reason)
        }
    }

    private var reason: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { text in
            guard let start = text.baseAddress else { return "" }
            roost_tls_reason(raw, start, text.count)
            return String(cString: start)
        }
    }
}
