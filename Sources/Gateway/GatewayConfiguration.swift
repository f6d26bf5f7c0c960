package import DurableStreams
import Glibc
package import HTTP
package import Hub

/// How the hub listens and what it allows a connection.
package struct GatewayConfiguration: Sendable {
    package var host = "127.0.0.1"
    package var port = 4000
    /// The path of a Unix domain socket to listen at as well, and its permissions.
    package var socket: String?
    package var socketMode = 0o660
    package var opsHost = "127.0.0.1"
    /// Nil: no operator's port.
    package var opsPort: Int? = 4001
    /// Event loops, one thread each.
    package var loops = 1
    /// Whether broadcasts go out in batches by io_uring where the kernel has it.
    package var usesIOUring = true
    /// What holds at the start.
    package var rules = GatewayRules()
    /// Largest body of an HTTP request.
    package var maximumBodyBytes = 5_000_000
    /// Whether no socket is let in while row changes cannot be served.
    package var requiresFeed = true
    package var descriptors = DescriptorRoom(limit: .max)

    package init() {}
}

/// What connections are allowed and how they are treated: all of it may be replaced while the hub runs.
package struct GatewayRules: Sendable {
    package var limits = HubLimits()
    package var presence = PresenceRules()
    package var typing = TypingRules()
    /// The largest message a client may send (the original: 5,000,000 bytes).
    package var maximumMessageBytes = 5_000_000
    /// Bytes a socket may have pending before it is cut off as a slow reader.
    package var pendingBytesPerSocket = 1_048_576
    /// What all connections together may have sent of requests and messages that are not complete.
    package var unfinishedBytes = 67_108_864
    /// Seconds of silence after which a socket is pinged, and after which it is closed (Phoenix: 60).
    package var pingAfter: Int32 = 25
    package var idleTimeout: Int32 = 60
    /// Seconds that the body of an HTTP request may take.
    package var bodyTimeout: Int32 = 30
    /// Bad tokens an address may show in a minute before its connections are held back; zero: it never is.
    package var failuresPerMinute = 10
    /// Requests of one user that may be open at once (`HeldRequests`); zero: any number.
    package var requestsPerUser = 100
    package var trustedProxies = TrustedProxies()
    package var origins = AllowedOrigins()
    /// The cookie that has the token of whoever reads events; nil: none counts.
    package var tokenCookie: String?
    package var streamRoutes: [StreamRoute] = []

    package init() {}
}

/// Why the gateway does not start; the description is the sentence to print.
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
