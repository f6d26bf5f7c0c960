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
    /// Shared by the loops, and with the feed, which keeps what it points to.
    package var sessions = SessionRegistry()
    /// Shared by the loops.
    package var history = HistoryStore()
    /// Shared by the loops.
    package var presences = PresenceLeases()
    /// Where it is noted who is present, for whoever writes it down; nil if nobody does.
    package var presenceLog: PresenceLog?
    /// Which users are online, for whoever asks; nil if nobody does.
    package var users: UserPresence?
    /// The same for their devices.
    package var devices: UserPresence?
    /// Who types, for whoever asks; nil if nobody does.
    package var typingRegistry: TypingRegistry?
    /// Who joins a Live Activity's channel, for whoever shows it; nil if nobody does.
    package var summaryJoins: SummaryJoins?
    /// Largest body of an HTTP request.
    package var maximumBodyBytes = 5_000_000

    package init() {}
}
