import Hub
import Wire

/// The members present on all hubs, according to the log: every hub keeps the same table, each member with the hub that speaks for it.
///
/// The loops keep their own lists of what they show; this table serves to end the members of a dead hub, to send this hub's
/// members to a new one, and to find out whether two hubs agree (`digest`). Pure; confined to the thread of the cluster's worker.
///
/// **Whose word counts.** A member's hub speaks for it. A disconnected client may come back to any hub, and its member
/// may have ended by then: the log decides, whatever hubs think of each other. A `claimed` message moves the member to
/// another hub, an `over` ends it; each names the member's hub and its *turn*, the number of its claims so far, and
/// counts only if both still match. So the first of several in the log counts, on every hub, and the others are void.
struct PresentMembers {
    typealias MemberName = PeerMessage.MemberName

    typealias Owner = PeerMessage.MemberOwner

    struct Copy: Equatable {
        var record: PeerMessage.PresentMember
        let channel: ChannelKey
        /// The process of the hub that speaks for the member.
        fileprivate(set) var hub: UInt64
        /// The number of claims so far.
        fileprivate(set) var turn = 0
        /// Until when the member counts although disconnected, in monotonic milliseconds; nil while it is connected.
        fileprivate(set) var lostUntil: Int64?
        /// Lost because its hub is taken for dead, not because that hub said so: if the hub is back, so is the member.
        fileprivate(set) var isOfDead = false
        /// No client came back for the member; this hub has yet to remove it.
        fileprivate(set) var endedBy: UInt64?

        var owner: Owner { Owner(hub: hub, turn: turn) }

        init(
            record: PeerMessage.PresentMember, channel: ChannelKey, hub: UInt64, turn: Int = 0, lostUntil: Int64? = nil
        ) {
            self.record = record
            self.channel = channel
            self.hub = hub
            self.turn = turn
            self.lostUntil = lostUntil
        }
    }

    private var copies: [MemberName: Copy] = [:]
    private var members: [UInt64: Set<MemberName>] = [:]
    private var digests: [UInt64: UInt64] = [:]

    var count: Int { copies.count }

    subscript(name: MemberName) -> Copy? { copies[name] }

    var hubs: Set<UInt64> { Set(members.keys) }

    func count(of hub: UInt64) -> Int { members[hub]?.count ?? 0 }

    func members(of hub: UInt64) -> [Copy] { (members[hub] ?? []).compactMap { copies[$0] } }

    func forEach(of hub: UInt64, _ body: (Copy) -> Void) {
        for name in members[hub] ?? [] { if let copy = copies[name] { body(copy) } }
    }

    /// Equal on two hubs that have the same members of a hub: the exclusive or of a hash of each.
    func digest(of hub: UInt64) -> UInt64 { digests[hub] ?? 0 }

    /// Disconnected members whose time has passed, of hubs that no longer end them themselves.
    func overdueMembers(of isGone: (UInt64) -> Bool, at now: Int64) -> [Copy] {
        members.keys.filter(isGone).flatMap { members(of: $0) }.filter {
            $0.endedBy == nil && $0.lostUntil.map { $0 <= now } ?? false
        }
    }

    /// Members that a hub was about to remove.
    func endedMembers(by hub: UInt64) -> [Copy] { copies.values.filter { $0.endedBy == hub } }

    // MARK: Messages of hubs

    /// - Returns: false if another hub speaks for the member, so that the join is void.
    @discardableResult
    mutating func addMember(_ record: PeerMessage.PresentMember, in channel: ChannelKey, of hub: UInt64) -> Bool {
        var copy = copies[record.member] ?? Copy(record: record, channel: channel, hub: hub)
        // Over, but not yet removed: its client came back too late, and the member is new.
        guard copy.hub == hub || copy.endedBy != nil else { return false }
        let state = copy.record.appState
        copy.hub = hub
        removeCopy(record.member)
        copy.record = record
        copy.record.appState = record.appState ?? state
        copy.lostUntil = nil
        copy.isOfDead = false
        copy.endedBy = nil
        insertCopy(copy)
        return true
    }

    /// - Returns: the member as it was; nil if it is gone or has changed since.
    @discardableResult mutating func removeMember(_ name: MemberName, ref: Name, by hub: UInt64) -> Copy? {
        guard let copy = copies[name], copy.record.ref == ref, copy.hub == hub || copy.endedBy == hub else {
            return nil
        }
        removeCopy(name)
        return copy
    }

    /// - Parameter isOfDead: the member's hub did not report the loss itself.
    /// - Returns: nil if the member is unknown, or another hub speaks for it.
    mutating func markLost(_ name: MemberName, of hub: UInt64, until: Int64, isOfDead: Bool = false) -> Copy? {
        guard let copy = copies[name], copy.hub == hub, copy.endedBy == nil else { return nil }
        copies[name]?.lostUntil = until
        copies[name]?.isOfDead = isOfDead
        return copies[name]
    }

    /// A hub that was taken for dead is alive, and so are its members.
    ///
    /// - Returns: the members that had counted as lost for that reason.
    mutating func hubReturned(_ hub: UInt64) -> [Copy] {
        let lost = members(of: hub).filter { $0.isOfDead && $0.endedBy == nil }
        for copy in lost {
            copies[copy.record.member]?.lostUntil = nil
            copies[copy.record.member]?.isOfDead = false
        }
        return lost
    }

    /// Extends the time for the member's client to come back.
    mutating func extendWindow(_ name: MemberName, until: Int64) -> Copy? {
        guard let end = copies[name]?.lostUntil else { return nil }
        copies[name]?.lostUntil = max(end, until)
        return copies[name]
    }

    /// Moves a member to the hub that claims it.
    ///
    /// - Returns: the member as it was before; nil if the claim is void.
    mutating func claimMember(_ name: MemberName, of owner: Owner, by hub: UInt64) -> Copy? {
        guard let before = copies[name], before.owner == owner, before.endedBy == nil else { return nil }
        removeCopy(name)
        var copy = before
        copy.hub = hub
        copy.turn += 1
        copy.lostUntil = nil
        copy.isOfDead = false
        insertCopy(copy)
        return before
    }

    /// A hub reports that no client came back for the member; that hub is to remove it.
    ///
    /// - Returns: nil if the end is void.
    mutating func endMember(_ name: MemberName, of owner: Owner, by hub: UInt64) -> Copy? {
        guard let copy = copies[name], copy.owner == owner, copy.endedBy == nil else { return nil }
        copies[name]?.endedBy = hub
        return copy
    }

    mutating func setAppState(_ state: ReportedAppState, of name: MemberName) { copies[name]?.record.appState = state }

    /// Replaces the known members of a hub, or those with covered names, with the ones it reports.
    ///
    /// - Parameter isOfDead: another hub reports them, because theirs is taken for dead.
    /// - Returns: the members that are new or have changed, and those that are gone.
    mutating func replace(
        membersOf hub: UInt64, by others: [Copy], isOfDead: Bool = false,
        where isCovered: (MemberName) -> Bool = { _ in true }
    ) -> (joined: [Copy], left: [Copy]) {
        var gone = (members[hub] ?? []).filter(isCovered)
        var joined: [Copy] = []
        for copy in others {
            let name = copy.record.member
            // According to the log, another hub has the member, which the sender had not read yet. If both sides assign
            // the member to this hub, the hub's own report counts, whatever number of claims each side knows.
            if let known = copies[name], known.hub != hub, known.turn > copy.turn { continue }
            gone.remove(name)
            let isKnown = copies[name]?.record.ref == copy.record.ref
            removeCopy(name)
            var copy = copy
            copy.isOfDead = isOfDead && copy.lostUntil != nil
            insertCopy(copy)
            if !isKnown { joined.append(copy) }
        }
        let left = gone.compactMap { copies[$0] }
        for name in gone { removeCopy(name) }
        return (joined, left)
    }

    // MARK: The table

    private mutating func insertCopy(_ copy: Copy) {
        let name = copy.record.member
        copies[name] = copy
        members[copy.hub, default: []].insert(name)
        digests[copy.hub, default: 0] ^= Self.hash(copy.record)
    }

    private mutating func removeCopy(_ name: MemberName) {
        guard let copy = copies.removeValue(forKey: name) else { return }
        members[copy.hub]?.remove(name)
        if members[copy.hub]?.isEmpty == true { members[copy.hub] = nil }
        digests[copy.hub, default: 0] ^= Self.hash(copy.record)
        if digests[copy.hub] == 0 { digests[copy.hub] = nil }
    }

    /// FNV-1a over the member and its ref, mixed as in SplitMix64: the same in every process, unlike Swift's `Hasher`.
    static func hash(_ record: PeerMessage.PresentMember) -> UInt64 { hash(record.member, record.ref) }

    static func hash(_ name: MemberName, _ ref: Name = "") -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func mixNumber(_ number: UInt64) {
            for shift in stride(from: 0, to: 64, by: 8) {
                hash = (hash ^ (number >> UInt64(shift) & 0xff)) &* 0x100_0000_01b3
            }
        }
        mixNumber(name.boot)
        mixNumber(UInt64(bitPattern: Int64(name.loop)))
        mixNumber(UInt64(bitPattern: Int64(name.serial)))
        for byte in ref.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
        hash = (hash ^ hash >> 27) &* 0x94d0_49bb_1331_11eb
        return hash ^ hash >> 31
    }
}
