import Wire

/// What one member of a private channel may do there, as far as it is known, and what waits until it is.
///
/// Read rights are asked at the join and again for each new token. Write rights are asked at the first write, and hold as
/// long as the token.
final class ChannelPass {
    /// Nil until the join is decided.
    var read: ChannelExtensions?
    /// The question about reading that is under way, of the join or of a new token.
    var readQuestion: AuthorizationID?
    /// What a new token says, until it is decided what it may read. The member keeps what it has, and its old token's
    /// end.
    var newClaims: Claims?
    var write = WriteRights()
    var held = HeldWrites()
    /// The member asked for presence when it joined.
    let wantsPresence: Bool
    /// From the join's question to its reply.
    var replay: PendingReplay?
    /// What was replayed, and so must not come again.
    var replayed: [String] = []

    init(wantsPresence: Bool, replay: ReplayRequest?) {
        self.wantsPresence = wantsPresence
        self.replay = replay.map { PendingReplay(request: $0) }
    }
}

/// The right to write, for each extension.
struct WriteRights {
    enum State: Equatable {
        case unknown
        case asked(AuthorizationID)
        case allowed
        case denied
    }

    private var broadcast = State.unknown
    private var presence = State.unknown

    subscript(need: ChannelExtensions) -> State {
        get { need == .broadcast ? broadcast : presence }
        set { if need == .broadcast { broadcast = newValue } else { presence = newValue } }
    }

    var questions: [AuthorizationID] {
        [broadcast, presence].compactMap { if case .asked(let id) = $0 { id } else { nil } }
    }
}
