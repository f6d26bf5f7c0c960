import DequeModule
import Hub
import Wire

/// The state that this hub shares with the others, apart from what each keeps for itself: who is present where, which
/// channels keep history, and which of this hub's messages are still on their way through the log.
///
/// **Presence** is a table that changes through the log alone (`PresentMembers`): hubs that have read the same part of
/// the log have the same table, which includes what they said themselves. The loops are ahead of it by what this hub
/// has said and not yet read back (`own`); where the log decides otherwise, the loops are corrected.
///
/// Pure: its inputs are the relays of the loops, the messages of the log, and the hubs that come and go; its outputs
/// are ordered. Confined to the thread of the cluster's worker.
struct ClusterState {
    enum Output {
        /// Send to the other hubs; a message to a channel with history comes back as this hub's own.
        case tell(PeerMessage)
        /// Pass to all loops.
        case hear(Relay)
        case conclude(LeaseConclusion, MemberID, ChannelKey, loop: Int)
        /// Clients that join here may take this presence over.
        case offer(PresenceLease)
        case withdraw(MemberID, PresenceLease.Place)
        case extend(MemberID, PresenceLease.Place, until: Int64)
        /// Number the message, then pass it to all loops.
        case number(ChannelKey, OrderedBroadcast, isOwn: Bool)
        case keep(ChannelKey, HistoryWish?, hub: UInt64)
        /// A message of the log is missing from the channel's history here.
        case lack(ChannelKey)
        /// Record that a member is present on this hub.
        case record(PresenceRecord)
        case forget(ref: Name)
    }

    /// The known state of a hub, or part of it (`PresencePieces`).
    struct Snapshot: Equatable {
        var members: [PresentMembers.Copy] = []
        var wishes: [ChannelKey: HistoryWish] = [:]
    }

    let boot: UInt64
    var names: MemberNames
    var members = PresentMembers()
    /// This hub's members as its loops have them, ahead of the log.
    var own: [PeerMessage.MemberName: Own] = [:]
    /// The histories that members of each hub want kept.
    var wishes: [UInt64: [ChannelKey: HistoryWish]] = [:]
    /// This hub's claims that the log has not returned yet, in order: for each, whether it is already known to be void.
    var claims: [PeerMessage.MemberName: [Bool]] = [:]
    /// This hub's messages to channels with history that the log has not returned yet, in order.
    private var ordered: Deque<(key: ChannelKey, broadcast: OrderedBroadcast)> = []
    /// The number of messages delivered without waiting for the log that it has yet to return.
    private var toldAlready = 0
    /// The log can be written.
    private(set) var isInLog = false
    private var wasInLog = false
    /// The log was away since the loops and the log last agreed on this hub's members.
    private var mayDiffer = false
    private var suspects: [PeerMessage.MemberName: Name] = [:]

    struct Own {
        var record: PeerMessage.PresentMember
        let channel: ChannelKey
    }

    init(boot: UInt64) {
        self.boot = boot
        names = MemberNames(boot: boot)
    }

    /// The hubs about which anything is known, including this one.
    var knownHubs: Set<UInt64> { members.hubs.union(wishes.keys) }

    /// Equal on two hubs that know the same about a hub.
    func digest(of hub: UInt64) -> UInt64 {
        (wishes[hub] ?? [:]).reduce(members.digest(of: hub)) { $0 ^ Self.hash($1.key, $1.value) }
    }

    // MARK: - Messages of the loops

    /// - Parameters:
    ///   - record: the stored record of a presence, by its ref.
    ///   - wish: the history that this hub's members now want of a channel.
    ///   - shortest: the least time for which a disconnected member counts: clients sent away by a drain come back elsewhere.
    mutating func publishRelay(
        _ relay: Relay, by loop: Int, at now: Int64, shortest: Int64 = 0, record: (Name) -> PresenceRecord?,
        wish: (ChannelKey) -> HistoryWish?, _ out: inout [Output]
    ) {
        switch relay {
        case .broadcast(let key, let message): out.append(.tell(.broadcast(key, .init(message))))
        case .ordered(let key, let broadcast, _): publishOrdered(key, broadcast, &out)
        case .presence(let key, let diff): said(diff, in: key, record, &out)
        case .typing(let key, let relay): out.append(.tell(.typing(key, typingWord(relay))))
        case .lease(let key, .lost(let member, let time)):
            said(.lost(member, for: max(time, shortest)), in: key, loop, at: now, &out)
        case .lease(let key, let notice): said(notice, in: key, loop, at: now, &out)
        case .appState(let key, let member, let state):
            let name = names.name(of: member)
            own[name]?.record.appState = state
            out.append(.tell(.appState(key, name, state)))
        case .keeping(let key):
            let wish = wish(key)
            guard wishes[boot]?[key] != wish else { return }
            wishes[boot, default: [:]][key] = wish
            out.append(.tell(.keep(key, wish)))
        case .missing: break
        }
    }

    private mutating func said(
        _ diff: PresenceDiff, in key: ChannelKey, _ record: (Name) -> PresenceRecord?, _ out: inout [Output]
    ) {
        var leaves: [PeerMessage.GonePresence] = []
        // A replaced presence is not a leave for the other hubs: the member only changed.
        let replaced = Set(diff.joins.map(\.member))
        for meta in diff.leaves where !replaced.contains(meta.member) {
            let name = names.name(of: meta.member)
            if own[name]?.record.ref == meta.ref { own[name] = nil }
            leaves.append(.init(member: name, ref: meta.ref))
        }
        let joins = diff.joins.map { meta in
            let record = record(meta.ref)
            return PeerMessage.PresentMember(
                member: names.name(of: meta.member), ref: meta.ref, previousRef: meta.previousRef, key: meta.key,
                hasMadeKey: record?.hasMadeKey ?? true, user: record?.user, payload: meta.payload,
                appState: record?.appState)
        }
        for member in joins {
            var member = member
            member.appState = member.appState ?? own[member.member]?.record.appState
            own[member.member] = Own(record: member, channel: key)
        }
        out.append(.tell(.presence(key, joins: joins, leaves: leaves)))
    }

    /// The member's owner by the time a message sent now comes out of the log.
    func owner(of copy: PresentMembers.Copy) -> PeerMessage.MemberOwner {
        let pending = (claims[copy.record.member] ?? []).count { !$0 }
        return pending == 0 ? copy.owner : PeerMessage.MemberOwner(hub: boot, turn: copy.turn + pending)
    }

    private mutating func said(
        _ notice: LeaseNotice, in key: ChannelKey, _ loop: Int, at now: Int64, _ out: inout [Output]
    ) {
        switch notice {
        case .lost(let member, let time):
            out.append(.tell(.lost(key, names.name(of: member), milliseconds: Int(time))))
        case .expected(let member, let time):
            out.append(.tell(.expected(key, names.name(of: member), milliseconds: Int(time))))
        case .claimed(let member, _): claimMember(member, in: key, loop, &out)
        case .over(let member):
            let name = names.name(of: member)
            guard isInLog, let copy = members[name] else {
                return out.append(.conclude(.isOver, member, key, loop: loop))
            }
            out.append(.tell(.over(key, name, of: owner(of: copy))))
        }
    }

    /// A member of this hub took a presence over.
    private mutating func claimMember(_ member: MemberID, in key: ChannelKey, _ loop: Int, _ out: inout [Output]) {
        let name = names.name(of: member)
        let mine = own[name]?.record
        guard let copy = members[name] else {
            // The presence is gone; or it is so new that the log does not have it yet, so no other hub can own it.
            if mine == nil { out.append(.conclude(.goesOnAnew(payload: []), member, key, loop: loop)) }
            return
        }
        guard copy.endedBy == nil else {
            own[name] = nil
            let payload = (mine ?? copy.record).payload
            return out.append(.conclude(.goesOnAnew(payload: payload), member, key, loop: loop))
        }
        let owner = owner(of: copy)
        claims[name, default: []].append(false)
        if mine == nil {
            // The loops may have removed it for a leave from here that did not count.
            showMember(copy, &out)
            own[name] = Own(record: copy.record, channel: key)
            out.append(.record(presenceRecord(copy)))
        }
        out.append(.tell(.claimed(key, name, of: owner)))
    }

    private mutating func publishOrdered(
        _ key: ChannelKey, _ broadcast: OrderedBroadcast, _ out: inout [Output]
    ) {
        ordered.append((key, broadcast))
        let sender = broadcast.sender.map { names.name(of: $0.member) }
        out.append(
            .tell(.ordered(key, .init(broadcast.message), sender: sender, databaseID: broadcast.databaseID)))
        if !isInLog { tellOrdered(&out) }
    }

    // MARK: - Messages in one order

    mutating func ownOrderedCame(in key: ChannelKey, _ out: inout [Output]) {
        guard toldAlready == 0 else {
            toldAlready -= 1
            // The log has the message, while this hub has it under an id of its own: a client that resumes from another hub lacks it here.
            out.append(.lack(key))
            return
        }
        guard let (key, broadcast) = ordered.popFirst() else { return }
        out.append(.number(key, broadcast, isOwn: true))
    }

    /// The log refused the newest message to a channel with history as too large: only this hub's members get it. Left
    /// in the queue, it would be confused with the next one that the log returns.
    mutating func newestIsTooLarge(_ out: inout [Output]) {
        if let (key, broadcast) = ordered.popLast() {
            out.append(.number(key, broadcast, isOwn: true))
        } else {
            toldAlready -= 1
        }
    }

    /// The log is away, so the messages cannot wait for it.
    private mutating func tellOrdered(_ out: inout [Output]) {
        for (key, broadcast) in ordered { out.append(.number(key, broadcast, isOwn: true)) }
        toldAlready += ordered.count
        ordered.removeAll()
    }

    /// The log will never have some of this hub's messages: whatever depends on them is given up. Members are announced
    /// again once the log can be written (`allCameOut`), not now: while it is away, messages are lost one by one.
    mutating func messagesAreLost(_ out: inout [Output]) {
        tellOrdered(&out)
        toldAlready = 0
        for name in Array(claims.keys) { voidOwnClaim(of: name, &out) }
        claims.removeAll()
        mayDiffer = true
    }

    /// Everything this hub had said when the log was opened has come out of it, or never will: the loops and the log
    /// agree on this hub's members, or the difference is announced again. Redis may have lost messages that it had
    /// accepted and no hub had read, which no sequence reveals in an epoch that begins without them. Messages on their
    /// way cause differences that last a moment, so a difference counts only if it is seen twice, some time apart.
    mutating func allCameOut(_ out: inout [Output]) {
        guard mayDiffer, isInLog else { return }
        let before = suspects
        suspects = differing
        mayDiffer = !suspects.isEmpty
        for (name, ref) in suspects where before[name] == ref { repeatMember(name, &out) }
    }

    /// This hub's members on which the log and the loops differ, with the ref to announce.
    private var differing: [PeerMessage.MemberName: Name] {
        var found: [PeerMessage.MemberName: Name] = [:]
        for (name, mine) in own where members[name]?.record.ref != mine.record.ref && claims[name] == nil {
            found[name] = mine.record.ref
        }
        members.forEach(of: boot) { copy in
            if own[copy.record.member] == nil { found[copy.record.member] = copy.record.ref }
        }
        return found
    }

    private func repeatMember(_ name: PeerMessage.MemberName, _ out: inout [Output]) {
        if let mine = own[name] {
            out.append(.tell(.presence(mine.channel, joins: [mine.record], leaves: [])))
        } else if let copy = members[name] {
            let gone = PeerMessage.GonePresence(member: name, ref: copy.record.ref)
            out.append(.tell(.presence(copy.channel, joins: [], leaves: [gone])))
        }
    }

    // MARK: - The log, and the other hubs

    /// The first time, clients that are already here have not heard the other hubs: earlier messages in the log are missing for them.
    mutating func logIsOpen(_ out: inout [Output]) {
        isInLog = true
        guard !wasInLog else { return }
        wasInLog = true
        out.append(.hear(.missing))
    }

    mutating func logIsAway(_ out: inout [Output]) {
        guard isInLog else { return }
        isInLog = false
        mayDiffer = true
        tellOrdered(&out)
    }

    /// A hub died: its members count as present for their windows, and its clients may come back here.
    ///
    /// - Parameters:
    ///   - window: how long a member counts, in milliseconds.
    ///   - isCoordinator: this hub completes the removals that the dead hub had begun.
    mutating func hubDied(
        _ hub: UInt64, at now: Int64, window: (ChannelKey, ReportedAppState?) -> Int64, isCoordinator: Bool,
        _ out: inout [Output]
    ) {
        for copy in members.members(of: hub) where copy.endedBy == nil && copy.lostUntil == nil {
            let until = now + window(copy.channel, copy.record.appState)
            guard let lost = members.markLost(copy.record.member, of: hub, until: until, isOfDead: true) else {
                continue
            }
            offerLease(lost, until: until, &out)
        }
        if isCoordinator {
            for copy in members.endedMembers(by: hub) {
                out.append(.conclude(.isOver, names.memberID(copy.record.member), copy.channel, loop: 0))
            }
        }
        for key in (wishes[hub] ?? [:]).keys { out.append(.keep(key, nil, hub: hub)) }
        wishes[hub] = nil
    }

    /// A hub is alive, possibly one that was taken for dead. Its members are present again, whatever was said about
    /// their windows; otherwise they would end at once if the hub were taken for dead again.
    mutating func hubReturned(_ hub: UInt64, _ out: inout [Output]) {
        for copy in members.hubReturned(hub) { withdrawLease(copy, &out) }
    }

    /// Ends the members of gone hubs whose windows have passed.
    ///
    /// - Parameter rank: the number of hubs that would do so before this one, each of which is given some time.
    mutating func endOverdue(
        of isGone: (UInt64) -> Bool, at now: Int64, rank: Int = 0, _ out: inout [Output]
    ) {
        for copy in members.overdueMembers(of: isGone, at: now - Int64(rank) * Self.patience) {
            let name = copy.record.member
            if isInLog {
                out.append(.tell(.over(copy.channel, name, of: copy.owner)))
                // Said once, and again after a while if the log loses it.
                _ = members.markLost(name, of: copy.hub, until: now + Self.patience, isOfDead: copy.isOfDead)
            }
        }
    }

    /// Milliseconds after which an end that did not come out of the log is sent again.
    private static let patience: Int64 = 2000
}
