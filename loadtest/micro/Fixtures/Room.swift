import Hub
import Wire

/// A hub with the rules that the gateway gives it, on a clock that is moved by hand; its actions are taken after every
/// call, as the gateway takes them.
final class Room {
    let hub: Hub
    private var now = HubTime(monotonic: 1_000_000, unix: 1_700_000_000_000)

    /// What is noted of the rows that are sent.
    enum Notes {
        case none
        /// For those who are alerted unless they have a row.
        case alerts
        /// And for `receipts.statement`.
        case alertsAndReceipts
    }

    init(_ notes: Notes = .none) {
        let sessions = SessionRegistry()
        sessions.nobodyIsFromBefore()
        var shared = HubShared(recovery: sessions)
        if notes != .none {
            shared = HubShared(
                recovery: sessions, users: UserPresence(notesTransitions: false),
                devices: UserPresence(notesTransitions: false), receipts: ReceiptRegistry())
        }
        if notes == .alertsAndReceipts { shared.receiptLog = ReceiptLog(tables: ReceiptTables(["public.messages"])) }
        hub = Hub(
            loop: 0, limits: HubLimits(), verifier: FixedVerifier(), random: CountingGenerator(),
            presence: PresenceRules(), typing: TypingRules(), shared: shared)
    }

    /// Each is a user of its own.
    func connect(_ slots: Range<Slot>, _ version: ProtocolVersion = .v2) {
        for slot in slots { hub.connect(slot, version: version, claims: FixedVerifier.claims(user: Int(slot))) }
    }

    func say(_ frame: [UInt8], isBinary: Bool = false, from slot: Slot) throws {
        try hub.receiveMessage(frame[...], isBinary: isBinary, from: slot, at: now)
        take()
    }

    /// Joins, and the feed serves what the join asks of it.
    ///
    /// - Returns: the groups that the feed was asked for.
    @discardableResult func join(_ frame: [UInt8], from slot: Slot) throws -> [ChangeGroupID] {
        try hub.receiveMessage(frame[...], isBinary: false, from: slot, at: now)
        let groups = hub.actions.compactMap { if case .subscribe(let group, _) = $0 { group } else { nil } }
        for group in groups { hub.changeSubscription(group, is: .live) }
        take()
        return groups
    }

    /// Connects and joins them all.
    func seat(_ slots: Range<Slot>, _ version: ProtocolVersion = .v2, by join: (Slot) -> [UInt8]) throws {
        connect(slots, version)
        for slot in slots { try self.join(join(slot), from: slot) }
    }

    func advance(by milliseconds: Int64) {
        now = now.advanced(by: milliseconds)
        if let due = hub.nextDue, due <= now.monotonic { hub.wake(at: now) }
        take()
    }

    func deliver(_ event: FeedEvent) {
        hub.deliverEvent(event)
        take()
    }

    /// What the gateway does after each call, the sending aside.
    func take() {
        blackHole(hub.actions)
        hub.actions.removeAll(keepingCapacity: true)
        hub.offerLeases()
    }
}

/// Numbers that differ, and are the same in every run, so that texts made of them have the same lengths.
struct CountingGenerator: RandomNumberGenerator {
    private var state: UInt64 = 1

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return state
    }
}
