/// Why the gateway does not start; the description is the sentence to print.
package enum GatewayError: Error, CustomStringConvertible {
    case cannotListen(host: String, port: Int, reason: String)
    case eventLibraryMissing

    package var description: String {
        switch self {
        case .cannotListen(let host, let port, let reason):
            "Cannot listen on \(host):\(port) (\(reason)); stop what uses the port, or choose another with ROOST_HTTP_PORT or ROOST_OPS_PORT."
        case .eventLibraryMissing:
            "libwebsockets has no libuv support here; install Debian's package libwebsockets-evlib-uv."
        }
    }
}
