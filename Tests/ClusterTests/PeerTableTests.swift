import Cluster
import Testing

/// `PeerTable`, rule by rule: who is there, and who is not, by leases and one's own link.
@Suite struct PeerTableTests {
    private var table: PeerTable
    private let gone: UInt64? = nil
    private var numbers: [HubIdentity: UInt64] = [:]
    private let ann: HubIdentity
    private let zoe: HubIdentity

    init() throws {
        table = PeerTable(own: try #require(HubIdentity(name: "own", boot: 1)))
        ann = try #require(HubIdentity(name: "ann", boot: 2))
        zoe = try #require(HubIdentity(name: "zoe", boot: 3))
    }

    private mutating func beat(
        _ hub: HubIdentity, _ flags: HubBeat.Flags = [], at now: Int64, ended: [HubBeat.Ended] = []
    ) -> [PeerTableAction] {
        numbers[hub, default: 0] += 1
        let place = LogPlace(epoch: 1, offset: 0)
        let beat = HubBeat(
            hub: hub, number: numbers[hub] ?? 0, since: place, place: place, settled: 0, flags: flags, ended: ended)
        var actions: [PeerTableAction] = []
        table.receiveBeat(beat, at: now, &actions)
        return actions
    }

    private mutating func leases(_ leases: [String: UInt64?], at now: Int64) -> [PeerTableAction] {
        var actions: [PeerTableAction] = []
        table.updateLeases(leases, at: now, &actions)
        return actions
    }

    private func died(_ hub: HubIdentity, silence: Int64) -> PeerTableAction {
        .died(HubBeat.Ended(hub: hub, since: LogPlace(epoch: 1, offset: 0), silence: silence))
    }

    private mutating func whole(_ epoch: UInt64, at now: Int64) { table.linkBecameWhole(epoch: epoch, at: now) }

    @Test mutating func hubsJoinByTheirBeats() {
        #expect(beat(zoe, at: 0) == [.joined(zoe)])
        #expect(beat(ann, at: 0) == [.joined(ann)])
        #expect(beat(ann, at: 500) == [])
        #expect(table.living == [ann, zoe])
        #expect(table.namesToAsk == ["ann", "own", "zoe"])
    }

    @Test mutating func aHubDiesWhenItsLeaseWasMissingTwice() {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        #expect(leases(["ann": gone], at: 3_500) == [])
        // A lease in between begins the count anew.
        #expect(leases(["ann": 2], at: 4_000) == [])
        #expect(leases(["ann": gone], at: 4_500) == [])
        #expect(leases(["ann": gone], at: 5_000) == [died(ann, silence: 5_000)])
        #expect(leases(["ann": gone], at: 5_500) == [])
        #expect(table.living == [])
        #expect(table.recentDeaths(at: 6_000).map(\.silence) == [6_000])
        // Nobody asked for it.
        #expect(leases([:], at: 6_000) == [])
    }

    /// After a restart of the engine all leases are gone, and come back one by one.
    @Test mutating func noVerdictComesFromASilenceOfOnesOwn() {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        _ = leases(["ann": gone], at: 4_000)
        table.linkWasLost()
        whole(2, at: 5_000)
        for now in stride(from: Int64(5_000), to: 8_500, by: 500) { #expect(leases(["ann": gone], at: now) == []) }
        #expect(leases(["ann": gone], at: 8_500) == [])
        #expect(leases(["ann": gone], at: 9_000) == [died(ann, silence: 9_000)])
    }

    @Test mutating func anotherEpochBeginsTheCountAnew() {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        _ = leases(["ann": gone], at: 4_000)
        whole(2, at: 4_100)
        #expect(leases(["ann": gone], at: 4_500) == [])
        #expect(leases(["ann": gone], at: 5_000) == [])
        // The same epoch once more is no new one.
        whole(2, at: 7_000)
        #expect(leases(["ann": gone], at: 7_600) == [])
        #expect(leases(["ann": gone], at: 8_100).count == 1)
    }

    @Test mutating func aProcessThatTookItsPlaceEndsAHubAtOnce() throws {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        let next = try #require(HubIdentity(name: "ann", boot: 9))
        #expect(beat(next, at: 1_000) == [.joined(next)])
        // The old lease has to run out first.
        #expect(leases(["ann": 2], at: 1_500) == [])
        #expect(leases(["ann": 9], at: 3_000) == [died(ann, silence: 3_000)])
        #expect(table.living == [next])
    }

    @Test mutating func aNewProcessMayWaitForTheOldLease() throws {
        whole(1, at: 0)
        let next = try #require(HubIdentity(name: "ann", boot: 9))
        _ = beat(next, at: 10_000)
        for now in stride(from: Int64(10_000), to: 13_500, by: 500) { #expect(leases(["ann": 2], at: now) == []) }
        #expect(leases(["ann": 9], at: 13_500) == [])
        #expect(table.living == [next])
    }

    @Test mutating func aGoodByeIsNoDeath() {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        #expect(beat(ann, .draining, at: 500) == [])
        #expect(table.peers[ann]?.state == .draining)
        #expect(beat(ann, [.draining, .leaving], at: 1_000) == [.left(ann)])
        for now in stride(from: Int64(4_000), to: 8_000, by: 500) { #expect(leases(["ann": gone], at: now) == []) }
        #expect(table.recentDeaths(at: 8_000) == [])
    }

    @Test mutating func aHubThatWasFrozenComesBackByItsLease() {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        _ = leases(["ann": gone], at: 4_000)
        #expect(leases(["ann": gone], at: 4_500).count == 1)
        #expect(beat(ann, at: 5_000) == [])
        #expect(table.namesToAsk.contains("ann"))
        #expect(leases(["ann": gone], at: 5_000) == [])
        #expect(leases(["ann": 2], at: 5_500) == [.joined(ann)])
    }

    @Test mutating func aHubOfWhichOnlyMessagesCameIsKnown() {
        whole(1, at: 0)
        var actions: [PeerTableAction] = []
        table.noteMessages(ann, since: LogPlace(epoch: 1, offset: 0), at: 100, &actions)
        table.noteMessages(ann, since: LogPlace(epoch: 1, offset: 0), at: 900, &actions)
        #expect(actions == [.joined(ann)])
        _ = leases(["ann": gone], at: 4_000)
        #expect(leases(["ann": gone], at: 4_500) == [died(ann, silence: 3_600)])
    }

    @Test mutating func deathsAreHeardOfFromOthers() {
        let end = HubBeat.Ended(hub: zoe, since: LogPlace(epoch: 7, offset: 7), silence: 4_000)
        #expect(beat(ann, at: 0, ended: [end]) == [.joined(ann), .died(end)])
        #expect(beat(ann, at: 99, ended: [end]) == [])
        // Somebody heard it later than the first who told.
        let later = HubBeat.Ended(hub: zoe, since: end.since, silence: 2_000)
        #expect(beat(ann, at: 600, ended: [later]) == [.diedLater(later)])
        // Of one that this hub knows it judges by itself.
        var known = end
        known.hub = ann
        #expect(beat(zoe, at: 1_000, ended: [known]) == [])
    }

    /// Hubs that told each other of a death took turns in forgetting it, and it was news to one of them every minute.
    @Test mutating func aDeathIsNewsOnce() {
        whole(1, at: 0)
        _ = beat(ann, at: 0)
        _ = leases(["ann": gone], at: 4_000)
        _ = leases(["ann": gone], at: 4_500)
        #expect(table.recentDeaths(at: 56_000).map(\.hub) == [ann])
        // Nobody is told of it any more, a while before the first may have forgotten it.
        #expect(table.recentDeaths(at: 57_000) == [])
        _ = leases([:], at: 64_500)
        #expect(table.peers[ann] == nil)
        let end = HubBeat.Ended(hub: ann, since: LogPlace(epoch: 1, offset: 0), silence: 64_600)
        #expect(beat(zoe, at: 64_600, ended: [end]) == [.joined(zoe)])
    }

    @Test mutating func whoHasJustComeIsToldOfTheDeadByTheHubBehindIt() {
        _ = beat(zoe, at: 0)
        #expect(table.rank == 0)
        #expect(table.speaksForDead(to: zoe))
        _ = beat(ann, at: 0)
        #expect(table.rank == 1)
        #expect(table.speaksForDead(to: ann))
        #expect(!table.speaksForDead(to: zoe))
    }

    @Test mutating func aNameThatIsTakenIsNoticed() {
        whole(1, at: 0)
        #expect(leases(["own": 8], at: 1_000) == [])
        #expect(leases(["own": 8], at: 3_500) == [])
        #expect(leases(["own": 1], at: 4_000) == [])
        #expect(leases(["own": 8], at: 4_500) == [])
        #expect(leases(["own": 8], at: 5_000) == [.nameTaken(by: 8)])
        #expect(leases(["own": 8], at: 5_500) == [])
    }

    @Test mutating func theLowestNameActsForTheDead() {
        #expect(table.isCoordinator)
        _ = beat(zoe, at: 0)
        #expect(table.isCoordinator)
        _ = beat(ann, at: 0)
        #expect(table.coordinator == ann)
        _ = beat(ann, .leaving, at: 500)
        #expect(table.isCoordinator)
    }

    @Test mutating func aSnapshotIsAskedForWhenCopiesDifferTwice() {
        _ = beat(ann, at: 0)
        func compare(_ isEqual: Bool, hasCopy: Bool = true, at now: Int64, _ table: inout PeerTable)
            -> [PeerTableAction]
        {
            var actions: [PeerTableAction] = []
            table.compareDigest(ann, isEqual: isEqual, hasCopy: hasCopy, at: now, &actions)
            return actions
        }
        #expect(compare(false, hasCopy: false, at: 0, &table) == [.askSnapshot(ann)])
        #expect(compare(false, at: 3_000, &table) == [])
        #expect(compare(true, at: 3_500, &table) == [])
        #expect(compare(false, at: 4_000, &table) == [])
        #expect(compare(false, at: 4_500, &table) == [.askSnapshot(ann)])
        // Not again before an answer can have come.
        for now in stride(from: Int64(5_000), to: 6_500, by: 500) { #expect(compare(false, at: now, &table) == []) }
        #expect(compare(false, at: 6_500, &table) == [.askSnapshot(ann)])
    }

    @Test mutating func theTableIsBounded() throws {
        for boot in 0..<UInt64(3_000) { _ = beat(try #require(HubIdentity(name: "x\(boot)", boot: boot)), at: 0) }
        #expect(table.peers.count == PeerTable.mostPeers)
    }
}
