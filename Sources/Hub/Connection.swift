import Wire

/// One WebSocket, as the hub sees it. A class, because what a message asks of it would otherwise copy all of it.
final class Connection {
    let slot: Slot
    let version: ProtocolVersion
    /// From the token at the door; joins without a token of their own act by it.
    let claims: Claims
    /// A browser opened it.
    let isPage: Bool
    /// When it was opened, in monotonic milliseconds.
    let began: Int64
    /// Messages that came by it.
    var received = 0
    var memberships = Memberships()
    /// What it has certainly received; from its first membership on that hears row changes.
    var lifeline: Lifeline?
    /// What the answer to the last ping will prove.
    var asked: Lifeline.Proof?
    /// It had joined nothing when the last sweep came by.
    var wasEmptyAtSweep = false
    var limits = SocketLimits()
    /// What its app is doing, if it said so.
    var appState: AppState?
    /// Whom it makes count as online.
    var user: String?
    /// And which of that user's devices.
    var device: String?

    init(_ slot: Slot, version: ProtocolVersion, claims: Claims, isPage: Bool, at now: Int64) {
        self.slot = slot
        self.version = version
        self.claims = claims
        self.isPage = isPage
        began = now
    }

    /// Whose it is: by the token at the door, or else of a channel that it is in. Nil where none names a user.
    var subject: String? { claims.subject ?? memberships.lazy.compactMap(\.claims.subject).first }

    /// The number of the first proof that is about what is sent from here on.
    var nextProof: Int { max(lifeline?.proof.serial ?? 0, asked?.serial ?? 0) + 1 }
}
