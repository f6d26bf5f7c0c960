import Glibc

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
            "Cannot listen at \(path), because another program does; stop it, or choose another path with http.socket."
        case .cannotListenAt(let path, ENOTSOCK):
            "Cannot listen at \(path), because the file there is no socket; remove it, or choose another path with http.socket."
        case .cannotListenAt(let path, let problem):
            "Cannot listen at \(path) (\(String(cString: strerror(problem)))); choose a folder that the hub may write to with http.socket."
        case .eventLibraryMissing:
            "libwebsockets has no libuv support here; install Debian's package libwebsockets-evlib-uv."
        }
    }
}
