package import HTTP
package import Hub

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
    package var trustedProxies = TrustedProxies()
    package var origins = AllowedOrigins()

    package init() {}
}
