import Hub
import Synchronization
import Testing

/// How many sockets a user may have over all hubs.
@Suite struct UserTallyTests {
    @Test func thoseOfOtherHubsCountWhileTheyAreReached() {
        let tally = UserTally()
        tally.updateCounts([("ann", 1), ("bob", 5)], of: 7)
        tally.updateCounts([("ann", 1)], of: 8)
        #expect(tally.admitSocket("ann", most: 3), "nobody is reached yet")
        tally.releaseSocket("ann")
        tally.reachesOthers(true)
        #expect(tally.admitSocket("ann", most: 3))
        #expect(!tally.admitSocket("ann", most: 3))
        #expect(tally.admitSocket("ann", most: 0), "there is no limit")
        tally.releaseSocket("ann")
        tally.removePeer(hub: 8)
        #expect(tally.admitSocket("ann", most: 3), "a hub is gone, and its sockets with it")
        tally.reachesOthers(false)
        #expect(tally.admitSocket("ann", most: 3) && !tally.admitSocket("ann", most: 3), "each hub by itself")
    }

    @Test func whatOthersSayIsWhatIsSoNow() {
        let tally = UserTally()
        tally.reachesOthers(true)
        tally.updateCounts([("ann", 2)], of: 7)
        #expect(!tally.admitSocket("ann", most: 2))
        tally.updateCounts([("ann", 0)], of: 7)
        #expect(tally.admitSocket("ann", most: 1))
        tally.updateCounts([("bob", 1), ("cid", 1)], of: 7)
        tally.replaceCounts([("ben", 1)], of: 7) { $0.text.hasPrefix("b") }
        #expect(
            tally.admitSocket("bob", most: 1) && !tally.admitSocket("ben", most: 1)
                && !tally.admitSocket("cid", most: 1))
    }

    @Test("users whom Unicode calls equivalent have a count each")
    func usersAreTheirBytes() {
        let tally = UserTally()
        #expect(tally.admitSocket("Jos\u{E9}", most: 1))
        #expect(tally.admitSocket("Jose\u{301}", most: 1))
        tally.releaseSocket("Jose\u{301}")
        #expect(!tally.admitSocket("Jos\u{E9}", most: 1))
    }

    @Test func changesAreToldOnceAndTheNewestOfEach() {
        let tally = UserTally()
        _ = tally.admitSocket("before", most: 0)
        let calls = Mutex(0)
        tally.startReporting { calls.withLock { $0 += 1 } }
        for _ in 0..<3 { _ = tally.admitSocket("ann", most: 0) }
        tally.releaseSocket("ann")
        _ = tally.admitSocket("bob", most: 0)
        tally.releaseSocket("bob")
        #expect(calls.withLock { $0 } == 1)
        #expect(tally.takeChanges(upTo: 9).sorted { $0.user < $1.user }.map(\.count) == [2, 0])
        #expect(tally.takeChanges(upTo: 9).isEmpty)
        _ = tally.admitSocket("cid", most: 0)
        #expect(calls.withLock { $0 } == 2)
        #expect(tally.counts { _ in true }.reduce(0) { $0 + $1.count } == 4)
        #expect(!tally.admitSocket("ann", most: 2))
        #expect(tally.takeChanges(upTo: 9).map(\.user) == ["cid"], "who is refused changes nothing")
    }
}
