import Hub
import Synchronization
import Testing

/// How many sockets a user may have over all hubs.
@Suite struct UserTallyTests {
    @Test func thoseOfOtherHubsCountWhileTheyAreReached() {
        let tally = UserTally()
        tally.set([("ann", 1), ("bob", 5)], of: 7)
        tally.set([("ann", 1)], of: 8)
        #expect(tally.enter("ann", most: 3), "nobody is reached yet")
        tally.leave("ann")
        tally.reachesOthers(true)
        #expect(tally.enter("ann", most: 3))
        #expect(!tally.enter("ann", most: 3))
        #expect(tally.enter("ann", most: 0), "there is no limit")
        tally.leave("ann")
        tally.forget(hub: 8)
        #expect(tally.enter("ann", most: 3), "a hub is gone, and its sockets with it")
        tally.reachesOthers(false)
        #expect(tally.enter("ann", most: 3) && !tally.enter("ann", most: 3), "each hub by itself")
    }

    @Test func whatOthersSayIsWhatIsSoNow() {
        let tally = UserTally()
        tally.reachesOthers(true)
        tally.set([("ann", 2)], of: 7)
        #expect(!tally.enter("ann", most: 2))
        tally.set([("ann", 0)], of: 7)
        #expect(tally.enter("ann", most: 1))
        tally.set([("bob", 1), ("cid", 1)], of: 7)
        tally.replace([("ben", 1)], of: 7) { $0.text.hasPrefix("b") }
        #expect(tally.enter("bob", most: 1) && !tally.enter("ben", most: 1) && !tally.enter("cid", most: 1))
    }

    @Test("users whom Unicode calls equivalent have a count each")
    func usersAreTheirBytes() {
        let tally = UserTally()
        #expect(tally.enter("Jos\u{E9}", most: 1))
        #expect(tally.enter("Jose\u{301}", most: 1))
        tally.leave("Jose\u{301}")
        #expect(!tally.enter("Jos\u{E9}", most: 1))
    }

    @Test func changesAreToldOnceAndTheNewestOfEach() {
        let tally = UserTally()
        _ = tally.enter("before", most: 0)
        let calls = Mutex(0)
        tally.follow { calls.withLock { $0 += 1 } }
        for _ in 0..<3 { _ = tally.enter("ann", most: 0) }
        tally.leave("ann")
        _ = tally.enter("bob", most: 0)
        tally.leave("bob")
        #expect(calls.withLock { $0 } == 1)
        #expect(tally.takeChanges(upTo: 9).sorted { $0.user < $1.user }.map(\.count) == [2, 0])
        #expect(tally.takeChanges(upTo: 9).isEmpty)
        _ = tally.enter("cid", most: 0)
        #expect(calls.withLock { $0 } == 2)
        #expect(tally.counts { _ in true }.reduce(0) { $0 + $1.count } == 4)
        #expect(!tally.enter("ann", most: 2))
        #expect(tally.takeChanges(upTo: 9).map(\.user) == ["cid"], "who is refused changes nothing")
    }
}
