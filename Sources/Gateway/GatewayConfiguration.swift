package import DurableStreams
import Glibc
package import HTTP
package import Hub

/// How the hub listens, and what it allows a connection.
package struct GatewayConfiguration: Sendable {
    package var host = "127.0.0.1"
    package var port = 4000
    /// The path and permissions of an additional Unix domain socket.
    package var socket: String?
    package var socketMode = 0o660
    package var opsHost = "127.0.0.1"
    /// Nil for no operator's port.
    package var opsPort: Int? = 4001
    /// Event loops, one thread each.
    package var loops = 1
    /// Whether broadcasts are sent in batches by io_uring if the kernel supports it.
    package var usesIOUring = true
    /// The rules at the start.
    package var rules = GatewayRules()
    /// The largest body of an HTTP request.
    package var maximumBodyBytes = 5_000_000
    /// Whether new sockets are refused while row changes cannot be served.
    package var requiresFeed = true
    package var descriptors = DescriptorRoom(limit: .max)

    package init() {}
}

/// The rules for connections; all of them can be replaced while the hub runs.
package struct GatewayRules: Sendable {
    package var limits = HubLimits()
    package var presence = PresenceRules()
    package var typing = TypingRules()
    /// The largest message a client may send (the original: 5,000,000 bytes).
    package var maximumMessageBytes = 5_000_000
    /// The most bytes that may be pending for a socket before it is closed as a slow reader.
    package var pendingBytesPerSocket = 1_048_576
    /// The most bytes of incomplete requests and messages, over all connections.
    package var unfinishedBytes = 67_108_864
    /// Seconds of silence before a socket is pinged, and before it is closed (Phoenix: 60).
    package var pingAfter: Int32 = 25
    package var idleTimeout: Int32 = 60
    /// Seconds that the body of an HTTP request may take.
    package var bodyTimeout: Int32 = 30
    /// Bad tokens allowed per address and minute before its connections are held back; zero for no limit.
    package var failuresPerMinute = 10
    /// Requests that one user may have open at once (`HeldRequests`); zero for no limit.
    package var requestsPerUser = 100
    package var trustedProxies = TrustedProxies()
    package var origins = AllowedOrigins()
    /// The cookie with the token of clients that read events; nil if no cookie counts.
    package var tokenCookie: String?
    package var streamRoutes: [StreamRoute] = []

    package init() {}
}

/// The reason why the gateway cannot start; the description is the sentence to print.
package enum GatewayError: Error, CustomStringConvertible {
    case cannotListen(host: String, port: Int, reason: String)
    /// `problem` is an `errno`.
    case cannotListenAt(path: String, problem: Int32)
    case eventLibraryMissing

    package var description: String {
        switch self {
        case .cannotListen(let host, let port, let reason):
            "Cannot listen on \(host):\(port) (\(reason)); stop what uses the port, or choose another with ROOST_HTTP_PORT or ROOST_OPS_PORT."
        case .cannotListenAt(let path, EADDRINUSE):
            "Cannot listen at \(path), because another program listens there; stop it, or choose another path with "
                + "http.socket."
        case .cannotListenAt(let path, ENOTSOCK):
            "Cannot listen at \(path), because the file there is not a socket; remove it, or choose another path with "
                + "http.socket."
        case .cannotListenAt(let path, let problem):
            "Cannot listen at \(path) (\(String(cString: strerror(problem)))); choose a folder that the hub may write to with http.socket."
        case .eventLibraryMissing:
            "libwebsockets has no libuv support here; install Debian's package libwebsockets-evlib-uv."
        }
    }
}
