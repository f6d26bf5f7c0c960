package import Hub

/// How the hub listens and what it allows a connection.
package struct GatewayConfiguration: Sendable {
    package var host = "127.0.0.1"
    package var port = 4000
    /// The path of a Unix domain socket to listen at as well, and its permissions.
    package var socket: String?
    package var socketMode = 0o660
    /// Nil: clients speak plain HTTP.
    package var certificates: CertificateKeeper?
    package var opsHost = "127.0.0.1"
    /// Nil: no operator's port.
    package var opsPort: Int? = 4001
    /// Event loops, one thread each.
    package var loops = 1
    /// Whether broadcasts go out in batches by io_uring where the kernel has it.
    package var usesIOUring = true
    /// What holds at the start.
    package var rules = GatewayRules()
    /// What the hubs of the loops share.
    package var shared = HubShared()
    /// Largest body of an HTTP request.
    package var maximumBodyBytes = 5_000_000

    package init() {}
}
