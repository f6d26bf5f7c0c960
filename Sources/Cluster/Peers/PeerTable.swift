/// The hubs that are there, known from their beats and from the leases they keep in Redis.
///
/// A hub is judged by its lease alone, and only while this hub's own link is whole, because silence may be this hub's
/// own fault. A hub is dead when two answers lacked its lease or showed another process's, both in one epoch and after
/// this link had been whole for a lease and a beat. (A restart of Redis loses all leases: before that rule, hubs took
/// living ones for dead.) Pure: times are monotonic milliseconds that are passed in; confined to one thread.
package struct PeerTable {
    package struct Timing: Sendable {
        package var lease: Int64 = 3_000
        package var beat: Int64 = 500
        /// How long to wait before asking a hub for its members again; the pause grows if several snapshots did not help.
        package var snapshotPause: Int64 = 2_000
        package var longestSnapshotPause: Int64 = 60_000
        /// How long an ended hub is remembered.
        package var memory: Int64 = 60_000

        package init() {}
    }

    package enum State: Equatable, Sendable {
        case living
        case draining
        case left
        case died
    }

    package struct Peer: Equatable, Sendable {
        package internal(set) var state: State
        /// The last beat received; nil if only messages or reports of the hub have come.
        package internal(set) var beat: HubBeat?
        /// The log's head when the hub first opened it.
        package internal(set) var since: LogPlace
        package let joinedAt: Int64
        /// The time of the hub's last beat or message.
        package internal(set) var heardAt: Int64
        package internal(set) var changedAt: Int64
        /// Known only from other hubs, which reported its end.
        var isHearsay = false
        /// A beat arrived after the hub's end. The lease decides whether it is back.
        var isBack = false
        /// Successive answers without its lease.
        var missed = 0
        var unequal = 0
        var askedAt: Int64?
        /// Snapshots requested since the copies were last equal.
        var asks = 0

        package var isLiving: Bool { state == .living || state == .draining }
    }

    /// Bounds the table, whatever hostile or mistaken beats say.
    package static let mostPeers = 1_024

    package let own: HubIdentity
    package let timing: Timing
    package private(set) var peers: [HubIdentity: Peer] = [:]

    private var wholeSince: Int64?
    private var epoch: UInt64?
    /// Successive answers in which another process holds the lease for this hub's name.
    private var ownMissed: (boot: UInt64, count: Int)?

    package init(own: HubIdentity, timing: Timing = Timing()) {
        self.own = own
        self.timing = timing
    }

    // MARK: - Queries

    /// The other living hubs, by name.
    package var living: [HubIdentity] { peers.filter(\.value.isLiving).keys.sorted() }
    /// The names whose leases are queried: this hub's own and those of all hubs that may be alive.
    package var namesToAsk: [String] {
        Set(peers.filter { $0.value.isLiving || $0.value.isBack }.map(\.key.name)).union([own.name]).sorted()
    }
    /// The hubs that died recently, the latest first; for this hub's beats.
    package func recentDeaths(at now: Int64) -> [HubBeat.Ended] {
        // A hub reports an end for less time than hubs remember it, so a hub that forgot it is not told again.
        peers.filter { $0.value.state == .died && now - $0.value.heardAt < timing.memory - timing.lease }
            .sorted { ($0.value.changedAt, $0.key) > ($1.value.changedAt, $1.key) }
            .prefix(HubBeat.mostEnded).map {
                HubBeat.Ended(hub: $0.key, since: $0.value.since, silence: now - $0.value.heardAt)
            }
    }
    /// The hub that acts for dead ones: the living hub whose name comes first.
    package var coordinator: HubIdentity { min(own, living.first ?? own) }
    package var isCoordinator: Bool { coordinator == own }
    /// The number of living hubs that come before this one: 0 on the coordinator.
    package var rank: Int { living.count { $0 < own } }

    /// Whether this hub tells the asker about the members of dead hubs. That is the coordinator's task; if the asker
    /// has just started and is itself the coordinator, the next hub does it.
    package func speaksForDead(to asker: HubIdentity) -> Bool { !living.contains { $0 != asker && $0 < own } }

    // MARK: - Inputs

    /// Both connections answer from now on. Also called after each OPEN, with the epoch it returned.
    package mutating func linkBecameWhole(epoch: UInt64, at now: Int64) {
        if epoch != self.epoch || wholeSince == nil { wholeSince = now }
        if epoch != self.epoch { forgetMisses() }
        self.epoch = epoch
    }

    package mutating func linkWasLost() {
        wholeSince = nil
        forgetMisses()
    }

    package mutating func receiveBeat(_ beat: HubBeat, at now: Int64, _ actions: inout [PeerTableAction]) {
        let hub = beat.hub
        guard hub != own else { return }
        if var peer = peers[hub] {
            // An old beat that arrives late is ignored.
            guard beat.number > peer.beat?.number ?? 0 else { return }
            peer.beat = beat
            peer.since = beat.since
            peer.isHearsay = false
            peer.heardAt = now
            switch (peer.isLiving, beat.flags.contains(.leaving)) {
            case (true, true):
                peer.state = .left
                peer.changedAt = now
                actions.append(.left(hub))
            case (true, false): peer.state = Self.state(of: beat)
            case (false, let isLeaving): peer.isBack = !isLeaving
            }
            peers[hub] = peer
        } else if !beat.flags.contains(.leaving) {
            addPeer(hub, beat, since: beat.since, at: now, &actions)
        }
        for end in beat.ended where end.hub != own { receiveDeathReport(end, at: now, &actions) }
    }

    /// Another hub reports a death. A hub that this one knows itself is judged by its lease instead. One known only
    /// from reports is reported again if another hub heard it later than the first report said.
    private mutating func receiveDeathReport(_ end: HubBeat.Ended, at now: Int64, _ actions: inout [PeerTableAction]) {
        guard end.silence < timing.memory else { return }
        let heardAt = now - end.silence
        let known = peers[end.hub]
        if let known {
            guard known.isHearsay, heardAt >= known.heardAt + timing.beat / 5 else { return }
        } else {
            guard peers.count < Self.mostPeers else { return }
        }
        peers[end.hub] = Peer(
            state: .died, since: end.since, joinedAt: heardAt, heardAt: heardAt, changedAt: now, isHearsay: true)
        actions.append(known == nil ? .died(end) : .diedLater(end))
    }

    /// Messages of a hub arrived, possibly before its first beat or after its last.
    package mutating func noteMessages(
        _ hub: HubIdentity, since: LogPlace, at now: Int64, _ actions: inout [PeerTableAction]
    ) {
        guard hub != own else { return }
        if peers[hub] != nil {
            peers[hub]?.heardAt = now
            return
        }
        addPeer(hub, nil, since: since, at: now, &actions)
    }

    /// Takes the leases of `namesToAsk`: for each name the boot that holds the lease, or nil.
    package mutating func updateLeases(_ leases: [String: UInt64?], at now: Int64, _ actions: inout [PeerTableAction]) {
        peers = peers.filter { $0.value.isLiving || now - $0.value.changedAt < timing.memory }
        let mayJudge = wholeSince.map { now - $0 >= timing.lease + timing.beat } ?? false
        for hub in peers.keys.sorted() {
            guard let holder = leases[hub.name], var peer = peers[hub] else { continue }
            if holder == hub.boot {
                peer.missed = 0
                if peer.isBack {
                    peer.isBack = false
                    peer.state = peer.beat.map(Self.state) ?? .living
                    peer.changedAt = now
                    actions.append(.joined(hub))
                }
            } else if peer.isLiving {
                // A process that started later under this name, is heard and holds the lease has replaced this one. A
                // new process may have to wait until the lease of the one before it expires.
                let isReplaced =
                    holder.flatMap { peers[HubIdentity(checked: hub.name, boot: $0)] }
                    .map { $0.isLiving && $0.joinedAt > peer.joinedAt } ?? false
                if mayJudge, now - peer.joinedAt >= timing.lease + timing.beat { peer.missed += 1 }
                if isReplaced || peer.missed >= 2 {
                    peer.state = .died
                    peer.missed = 0
                    peer.changedAt = now
                    let silence = now - peer.heardAt
                    actions.append(.died(HubBeat.Ended(hub: hub, since: peer.since, silence: silence)))
                }
            }
            peers[hub] = peer
        }
        judgeOwnLease(leases[own.name] ?? nil, mayJudge, &actions)
    }

    /// Compares this hub's copy with the digest that `hub` reported, both at the same sequence. If there is no copy at
    /// all (`hasCopy`), a snapshot is requested at once.
    package mutating func compareDigest(
        _ hub: HubIdentity, isEqual: Bool, hasCopy: Bool, at now: Int64, _ actions: inout [PeerTableAction]
    ) {
        guard var peer = peers[hub], peer.isLiving else { return }
        peer.unequal = isEqual ? 0 : peer.unequal + 1
        if isEqual { peer.asks = 0 }
        let pause = min(timing.snapshotPause << Int64(min(max(0, peer.asks - 2), 16)), timing.longestSnapshotPause)
        let isDue = peer.askedAt.map { now - $0 >= pause } ?? true
        if !isEqual, isDue, peer.unequal >= 2 || !hasCopy {
            peer.unequal = 0
            peer.askedAt = now
            peer.asks += 1
            actions.append(.askSnapshot(hub))
        }
        peers[hub] = peer
    }

    // MARK: - Rules

    private static func state(of beat: HubBeat) -> State { beat.flags.contains(.draining) ? .draining : .living }

    private mutating func addPeer(
        _ hub: HubIdentity, _ beat: HubBeat?, since: LogPlace, at now: Int64, _ actions: inout [PeerTableAction]
    ) {
        guard peers.count < Self.mostPeers else { return }
        peers[hub] = Peer(
            state: beat.map(Self.state) ?? .living, beat: beat, since: since, joinedAt: now, heardAt: now,
            changedAt: now)
        actions.append(.joined(hub))
    }

    private mutating func judgeOwnLease(_ holder: UInt64?, _ mayJudge: Bool, _ actions: inout [PeerTableAction]) {
        guard let holder, holder != own.boot, mayJudge else {
            ownMissed = nil
            return
        }
        let count = ownMissed?.boot == holder ? (ownMissed?.count ?? 0) + 1 : 1
        ownMissed = (holder, count)
        if count == 2 { actions.append(.nameTaken(by: holder)) }
    }

    private mutating func forgetMisses() {
        for hub in peers.keys { peers[hub]?.missed = 0 }
        ownMissed = nil
    }
}
