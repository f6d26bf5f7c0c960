/// Why a member is not in its channel any more.
enum MembershipEnd {
    /// The client asked for it.
    case left
    /// The page that it belonged to is gone: its client never comes back, but the user may, in a moment.
    case unloaded
    /// The client joined again on the same socket, so it had not heard, or not believed, that it was in.
    case replaced
    /// Anything else: it may come back for what it missed.
    case lost
    /// It may not be there any more.
    case revoked

    /// Whether the others are told at once that it is gone.
    var isFinal: Bool { self == .left || self == .revoked }
}
