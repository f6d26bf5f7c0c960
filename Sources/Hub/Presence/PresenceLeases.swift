import Synchronization
package import Wire

/// The presence of a member that was cut off: it counts until its window ends or its client comes back for it.
package struct PresenceLease: Sendable {
    /// The ID under which it was tracked.
    package let member: MemberID
    package let place: Place
    package let key: String
    package let appState: ReportedAppState?
    /// The loop that ends the lease when it is over; `elsewhere` if that is up to another hub.
    package let loop: Int
    /// In monotonic milliseconds.
    package internal(set) var until: Int64
    /// A client of this user has joined and is about to identify itself.
    var isExpected = false

    package init(
        member: MemberID, place: Place, key: String, appState: ReportedAppState?, loop: Int, until: Int64
    ) {
        self.member = member
        self.place = place
        self.key = key
        self.appState = appState
        self.loop = loop
        self.until = until
    }

    /// Stands in for a loop's number if the member belongs to another hub. No loop ends its lease.
    package static let elsewhere = -2
    package var isElsewhere: Bool { loop == Self.elsewhere }

    /// The identity that a client needs to take over a lease.
    package struct Place: Hashable, Sendable {
        package let channel: ChannelKey
        /// The claim `sub`.
        package let user: Name?
        /// The client's own key; nil if the hub made one, so that only the user identifies the client.
        package let key: [UInt8]?

        package init(channel: ChannelKey, user: Name?, key: [UInt8]?) {
            self.channel = channel
            self.user = user
            self.key = key
        }
    }
}

/// The leases of members that were cut off. Shared by all loops, as a client may come back on another one.
///
/// A lease either goes to a client that comes back or ends, whichever is requested first: that is decided here, under a
/// lock that is held for a look-up. Safe from any thread.
package final class PresenceLeases: Sendable {
    /// Identifies a lease.
    private struct Name: Hashable {
        let member: MemberID
        let place: PresenceLease.Place

        init(_ lease: PresenceLease) {
            member = lease.member
            place = lease.place
        }
    }

    private struct State {
        var leases: [PresenceLease.Place: [PresenceLease]] = [:]
        var count = 0
        /// The ends of each loop's leases.
        var ends: [Int: TimerQueue<Name>] = [:]
        var isDraining = false
    }

    private let state = Mutex(State())

    package init() {}

    package var count: Int { state.withLock { $0.count } }

    func count(of place: PresenceLease.Place) -> Int { state.withLock { $0.leases[place]?.count ?? 0 } }

    /// Stops ending leases while the hub shuts down: all clients are expected back at its next process.
    package func startDraining() { state.withLock { $0.isDraining = true } }

    package var isDraining: Bool { state.withLock { $0.isDraining } }

    package func offerLeases(_ leases: [PresenceLease]) {
        state.withLock { state in
            for lease in leases {
                state.leases[lease.place, default: []].append(lease)
                state.count += 1
                guard !lease.isElsewhere else { continue }
                state.ends[lease.loop, default: TimerQueue()].setDue(Name(lease), at: lease.until)
            }
        }
    }

    /// Extends a lease because a client that may be its owner has joined and needs time to identify itself.
    ///
    /// - Returns: the lease it may own.
    @discardableResult
    func expectOwner(_ place: PresenceLease.Place, until: Int64) -> PresenceLease? {
        state.withLock { state in
            guard let leases = state.leases[place], !leases.isEmpty else { return nil }
            return Self.expectOwner(&state, place, leases.firstIndex { !$0.isExpected } ?? 0, until)
        }
    }

    /// Extends a lease whose possible owner has joined another hub.
    package func expectOwner(_ member: MemberID, of place: PresenceLease.Place, until: Int64) {
        state.withLock { state in
            guard let index = state.leases[place]?.firstIndex(where: { $0.member == member }) else { return }
            _ = Self.expectOwner(&state, place, index, until)
        }
    }

    private static func expectOwner(_ state: inout State, _ place: PresenceLease.Place, _ index: Int, _ until: Int64)
        -> PresenceLease?
    {
        state.leases[place]?[index].isExpected = true
        guard let lease = state.leases[place]?[index], lease.until < until else { return state.leases[place]?[index] }
        state.leases[place]?[index].until = until
        state.ends[lease.loop]?.setDue(Name(lease), at: until)
        return state.leases[place]?[index]
    }

    /// Removes a lease that is over, or went to a client of another hub.
    ///
    /// - Returns: whether it existed.
    @discardableResult
    package func remove(_ member: MemberID, of place: PresenceLease.Place) -> Bool {
        state.withLock { state in
            guard let index = state.leases[place]?.firstIndex(where: { $0.member == member }),
                let lease = state.leases[place]?.remove(at: index)
            else { return false }
            if state.leases[place]?.isEmpty == true { state.leases[place] = nil }
            state.ends[lease.loop]?.setDue(Name(lease), at: nil)
            state.count -= 1
            return true
        }
    }

    /// Hands a lease to a client that came back; of several, the one that `isBest` selects.
    func claimLease(_ place: PresenceLease.Place, best isBest: (PresenceLease) -> Bool = { _ in false })
        -> PresenceLease?
    {
        state.withLock { state in
            guard var leases = state.leases[place], !leases.isEmpty else { return nil }
            let index = leases.firstIndex(where: isBest) ?? leases.firstIndex(where: \.isExpected) ?? 0
            let lease = leases.remove(at: index)
            state.leases[place] = leases.isEmpty ? nil : leases
            state.ends[lease.loop]?.setDue(Name(lease), at: nil)
            state.count -= 1
            return lease
        }
    }

    /// Removes and returns the loop's leases that are over.
    func endLeases(of loop: Int, at now: Int64) -> [PresenceLease] {
        state.withLock { state in
            guard !state.isDraining else { return [] }
            var ended: [PresenceLease] = []
            while let name = state.ends[loop]?.takeDue(at: now) {
                guard let index = state.leases[name.place]?.firstIndex(where: { $0.member == name.member }),
                    let lease = state.leases[name.place]?.remove(at: index)
                else { continue }
                if state.leases[name.place]?.isEmpty == true { state.leases[name.place] = nil }
                state.count -= 1
                ended.append(lease)
            }
            return ended
        }
    }

    /// Returns when the loop's next lease ends.
    func nextEnd(of loop: Int) -> Int64? {
        state.withLock { $0.isDraining ? nil : $0.ends[loop]?.next }
    }
}

/// The leases as one loop sees them: its own, not yet known to the others, and those shared by all loops.
struct LoopLeases {
    let shared: PresenceLeases
    private var own: [PresenceLease] = []

    init(shared: PresenceLeases) {
        self.shared = shared
    }

    var hasOffers: Bool { !own.isEmpty }

    mutating func addLease(_ lease: PresenceLease) { own.append(lease) }

    /// Shares the loop's own leases with all loops.
    mutating func offerLeases() {
        shared.offerLeases(own)
        own.removeAll(keepingCapacity: true)
    }

    /// Returns the number of leases that may go to the same client.
    func count(of place: PresenceLease.Place) -> Int { own.count { $0.place == place } + shared.count(of: place) }

    /// Extends a lease because a client that may be its owner has joined and needs time to identify itself.
    ///
    /// - Returns: the lease it may own.
    mutating func expectOwner(_ place: PresenceLease.Place, until: Int64) -> PresenceLease? {
        guard let index = own.firstIndex(where: { $0.place == place && !$0.isExpected }) else {
            return shared.expectOwner(place, until: until)
        }
        own[index].isExpected = true
        own[index].until = max(own[index].until, until)
        return own[index]
    }

    /// Hands a lease to a client that came back; of several, the one that `isBest` selects.
    mutating func claimLease(_ place: PresenceLease.Place, best isBest: (PresenceLease) -> Bool) -> PresenceLease? {
        let candidates = own.indices.filter { own[$0].place == place }
        guard let index = candidates.first(where: { isBest(own[$0]) }) ?? candidates.first else {
            return shared.claimLease(place, best: isBest)
        }
        return own.remove(at: index)
    }
}

// MARK: After a restart

extension PresenceLeases {
    /// A presence from when the hub's last process ended.
    package struct Restored: Sendable {
        package let channel: ChannelKey
        package let meta: PresenceMeta
    }

    /// Turns written records into leases: clients that come back in time were never gone, not even to others that come
    /// back and are sent the list.
    ///
    /// - Parameter until: when members that did not come back are gone, in monotonic milliseconds.
    package func restoreLeases(_ records: [PresenceRecord], until: Int64) -> [Restored] {
        var leases: [PresenceLease] = []
        var restored: [Restored] = []
        for (number, record) in records.enumerated() {
            // No loop has this number, so no member of this process can collide.
            let member = MemberID(loop: -1, serial: number)
            let key = record.hasMadeKey ? nil : Array(record.key.utf8)
            leases.append(
                PresenceLease(
                    member: member,
                    place: PresenceLease.Place(channel: record.channel, user: record.user, key: key), key: record.key,
                    appState: record.appState, loop: 0, until: until))
            let meta = PresenceMeta(member: member, key: record.key, ref: record.ref, payload: record.payload)
            restored.append(Restored(channel: record.channel, meta: meta))
        }
        offerLeases(leases)
        return restored
    }
}
