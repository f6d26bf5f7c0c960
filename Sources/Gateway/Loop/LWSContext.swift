import CWebSockets
import Logging
import Synchronization

/// What libwebsockets keeps for an event loop: a context on its libuv loop, with a virtual host.
struct LWSContext {
    private var host: OpaquePointer?

    /// Not open yet.
    init() {}

    /// - Parameter owner: the loop that `lwsCallback` calls, from in here on.
    init(on libuv: LibuvLoop, owner: EventLoop) {
        let data = Unmanaged.passUnretained(owner).toOpaque()
        guard let context = roost_context_create(libuv.pointer, data) else {
            preconditionFailure("libwebsockets made no context; install libwebsockets-evlib-uv")
        }
        host = roost_vhost_create(context, "roost", lwsCallback)
    }

    /// Gives a connection to lws, with what is to be taken for the first bytes that came by it.
    func adopt(_ fd: Int32, _ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { bytes in
            lws_adopt_socket_vhost_readbuf(
                host, fd, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
        }
    }
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
