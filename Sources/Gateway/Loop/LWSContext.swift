import CWebSockets
import Logging
import Synchronization

/// The libwebsockets state of an event loop: a context on its libuv loop, with a virtual host.
struct LWSContext {
    private var host: OpaquePointer?

    /// A placeholder that is not open yet.
    init() {}

    /// - Parameter owner: the loop that `lwsCallback` calls, possibly during this call.
    init(on libuv: LibuvLoop, owner: EventLoop) {
        let data = Unmanaged.passUnretained(owner).toOpaque()
        guard let context = roost_context_create(libuv.pointer, data) else {
            preconditionFailure("libwebsockets made no context; install libwebsockets-evlib-uv")
        }
        host = roost_vhost_create(context, "roost", lwsCallback)
    }

    /// Gives a connection to lws, with bytes that lws treats as the first ones received.
    func adopt(_ fd: Int32, _ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { bytes in
            lws_adopt_socket_vhost_readbuf(
                host, fd, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
        }
    }
}

/// lws's own messages, which are about single misbehaving connections: logged for debugging only, so that they do not
/// bother the operator.
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

    /// lws may quote a peer's bytes, which may include a token. So its lines are cut where a query, an assignment or a
    /// JWT begins (RFC 7515: all of these begin with `{"` in base 64).
    private static func withoutSecrets(_ line: Substring) -> String {
        let marks = [line.firstIndex { $0 == "?" || $0 == "=" }, line.firstRange(of: "eyJ")?.lowerBound]
        guard let end = marks.compactMap({ $0 }).min() else { return String(line) }
        return line[..<end] + "…"
    }
}
