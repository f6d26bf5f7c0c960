import Hub
import Wire

/// Who is present on all hubs, as the log says it: every hub keeps the same, each member with the hub that speaks for it.
///
/// What the loops show is in their own lists; this is what is needed beside: to end the members of a hub that died, to send a new
/// hub those of this one, and to find out whether two hubs have the same (`digest`). Pure; confined to the thread of the cluster's
/// worker.
///
/// **Whose word counts.** A member's hub speaks for it. Who is cut off may come back to any hub, and may be over by then: that the
/// log decides, whatever hubs take each other for. A `claim` makes another hub the member's, an `over` ends it; each names the
/// member's hub and its *turn*, which counts the claims that it had, and counts only while the member has both. So of several the
/// first in the log counts, on every hub, and the others are void.
struct PresentMembers {
    typealias MemberName = PeerMessage.MemberName

    typealias Owner = PeerMessage.MemberOwner

    struct Copy: Equatable {
        var record: PeerMessage.PresentMember
        let channel: ChannelKey
        /// The process of the hub that speaks for it.
        fileprivate(set) var hub: UInt64
        /// How often it was claimed.
        fileprivate(set) var turn = 0
        /// Until when it counts though it was cut off, in monotonic milliseconds; nil while it is there.
        fileprivate(set) var lostUntil: Int64?
        /// It counts so because its hub is taken for dead, and not because that hub said so: where the hub is back, so is its member.
        fileprivate(set) var isOfDead = false
        /// Nobody came back for it: what is left is that this hub takes it away.
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

    /// The same on two hubs that have the same members of a hub: the exclusive or of a hash of each.
    func digest(of hub: UInt64) -> UInt64 { digests[hub] ?? 0 }

    /// Those that were cut off, of a hub that does not end them itself any more, and whose time is over.
    func overdue(of isGone: (UInt64) -> Bool, at now: Int64) -> [Copy] {
        members.keys.filter(isGone).flatMap { members(of: $0) }.filter {
            $0.endedBy == nil && $0.lostUntil.map { $0 <= now } ?? false
        }
    }

    /// Those that a hub was about to take away.
    func ended(by hub: UInt64) -> [Copy] { copies.values.filter { $0.endedBy == hub } }

    // MARK: What hubs say

    /// - Returns: false where another hub speaks for it, so that this says nothing.
    @discardableResult
    mutating func join(_ record: PeerMessage.PresentMember, in channel: ChannelKey, of hub: UInt64) -> Bool {
        var copy = copies[record.member] ?? Copy(record: record, channel: channel, hub: hub)
        // Over, but not taken away yet: it is somebody's who came too late for it, and is new.
        guard copy.hub == hub || copy.endedBy != nil else { return false }
        let state = copy.record.appState
        copy.hub = hub
        remove(record.member)
        copy.record = record
        copy.record.appState = record.appState ?? state
        copy.lostUntil = nil
        copy.isOfDead = false
        copy.endedBy = nil
        put(copy)
        return true
    }

    /// - Returns: what was known of it; nil where it is gone, or says something else by now.
    @discardableResult mutating func leave(_ name: MemberName, ref: Name, by hub: UInt64) -> Copy? {
        guard let copy = copies[name], copy.record.ref == ref, copy.hub == hub || copy.endedBy == hub else {
            return nil
        }
        remove(name)
        return copy
    }

    /// - Parameter isOfDead: its hub did not say so.
    /// - Returns: nil where it is not known, or another hub speaks for it.
    mutating func lose(_ name: MemberName, of hub: UInt64, until: Int64, isOfDead: Bool = false) -> Copy? {
        guard let copy = copies[name], copy.hub == hub, copy.endedBy == nil else { return nil }
        copies[name]?.lostUntil = until
        copies[name]?.isOfDead = isOfDead
        return copies[name]
    }

    /// A hub that was taken for dead is there: so are its members.
    ///
    /// - Returns: what was known of those that counted as lost for that.
    mutating func isBack(_ hub: UInt64) -> [Copy] {
        let lost = members(of: hub).filter { $0.isOfDead && $0.endedBy == nil }
        for copy in lost {
            copies[copy.record.member]?.lostUntil = nil
            copies[copy.record.member]?.isOfDead = false
        }
        return lost
    }

    /// There is more time for its client.
    mutating func expect(_ name: MemberName, until: Int64) -> Copy? {
        guard let end = copies[name]?.lostUntil else { return nil }
        copies[name]?.lostUntil = max(end, until)
        return copies[name]
    }

    /// A hub has it from here on.
    ///
    /// - Returns: what was known of it, before; nil where that is void.
    mutating func claim(_ name: MemberName, of owner: Owner, by hub: UInt64) -> Copy? {
        guard let before = copies[name], before.owner == owner, before.endedBy == nil else { return nil }
        remove(name)
        var copy = before
        copy.hub = hub
        copy.turn += 1
        copy.lostUntil = nil
        copy.isOfDead = false
        put(copy)
        return before
    }

    /// Nobody came back for it, says a hub, and is to take it away.
    ///
    /// - Returns: nil where that is void.
    mutating func end(_ name: MemberName, of owner: Owner, by hub: UInt64) -> Copy? {
        guard let copy = copies[name], copy.owner == owner, copy.endedBy == nil else { return nil }
        copies[name]?.endedBy = hub
        return copy
    }

    mutating func set(_ state: ReportedAppState, of name: MemberName) { copies[name]?.record.appState = state }

    /// What a hub says of its members, or of those that a name tells, in place of what was known.
    ///
    /// - Parameter isOfDead: another hub says it, as theirs is taken for dead.
    /// - Returns: those who came or say something else, and those who are gone.
    mutating func replace(
        membersOf hub: UInt64, by others: [Copy], isOfDead: Bool = false,
        where isCovered: (MemberName) -> Bool = { _ in true }
    ) -> (joined: [Copy], left: [Copy]) {
        var gone = (members[hub] ?? []).filter(isCovered)
        var joined: [Copy] = []
        for copy in others {
            let name = copy.record.member
            // By the log somebody else has it, which the hub had not read when it said this. Of one that is this hub's by either,
            // the hub's own word counts, whatever number of claims each of the two knows.
            if let known = copies[name], known.hub != hub, known.turn > copy.turn { continue }
            gone.remove(name)
            let isKnown = copies[name]?.record.ref == copy.record.ref
            remove(name)
            var copy = copy
            copy.isOfDead = isOfDead && copy.lostUntil != nil
            put(copy)
            if !isKnown { joined.append(copy) }
        }
        let left = gone.compactMap { copies[$0] }
        for name in gone { remove(name) }
        return (joined, left)
    }

    // MARK: The table

    private mutating func put(_ copy: Copy) {
        let name = copy.record.member
        copies[name] = copy
        members[copy.hub, default: []].insert(name)
        digests[copy.hub, default: 0] ^= Self.hash(copy.record)
    }

    private mutating func remove(_ name: MemberName) {
        guard let copy = copies.removeValue(forKey: name) else { return }
        members[copy.hub]?.remove(name)
        if members[copy.hub]?.isEmpty == true { members[copy.hub] = nil }
        digests[copy.hub, default: 0] ^= Self.hash(copy.record)
        if digests[copy.hub] == 0 { digests[copy.hub] = nil }
    }

    /// FNV-1a over the member and its ref, mixed as splitmix64 does it: the same in every process, which Swift's own is not.
    static func hash(_ record: PeerMessage.PresentMember) -> UInt64 { hash(record.member, record.ref) }

    static func hash(_ name: MemberName, _ ref: Name = "") -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        func add(_ number: UInt64) {
            for shift in stride(from: 0, to: 64, by: 8) {
                hash = (hash ^ (number >> UInt64(shift) & 0xff)) &* 0x100_0000_01b3
            }
        }
        add(name.boot)
        add(UInt64(bitPattern: Int64(name.loop)))
        add(UInt64(bitPattern: Int64(name.serial)))
        for byte in ref.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ hash >> 30) &* 0xbf58_476d_1ce4_e5b9
        hash = (hash ^ hash >> 27) &* 0x94d0_49bb_1331_11eb
        return hash ^ hash >> 31
    }
}
