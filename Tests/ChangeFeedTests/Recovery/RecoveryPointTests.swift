import ChangeFeed
import Testing

@testable import PostgresFixtures

/// From where on clients may yet be brought what they missed, across restarts of the hub and of the database.
@Suite struct RecoveryPointTests {
    private let start = ContinuousClock.now

    private func snapshot(_ number: UInt64) -> Snapshot { Snapshot(xmax: number, running: []) }

    /// Hands a change on and ends windows until there is a mark.
    private func mark(_ points: inout RecoveryPoints, at number: UInt64, after wait: Duration) -> Int? {
        points.handedOn(1)
        return points.windowEnded(at: snapshot(number), now: start + wait)
    }

    @Test func aFirstProcessBeginsWhereItIs() {
        var points = RecoveryPoints(window: .seconds(120))
        points.processStarted(after: nil, storedAt: nil, at: snapshot(10), now: start)
        #expect(points.restart == .snapshot(snapshot(10)))
        #expect(points.needed == snapshot(10))
        // Nobody is from before, so nothing is kept for anybody.
        let first = mark(&points, at: 20, after: .seconds(1))
        #expect(first == 1)
        points.updateNeeds(oldest: nil, now: start + .seconds(1))
        #expect(points.needed == snapshot(20))
    }

    @Test func whatTheLastProcessLeftIsKeptForItsClients() {
        var points = RecoveryPoints(window: .seconds(120))
        points.processStarted(after: snapshot(5), storedAt: snapshot(8), at: snapshot(8), now: start)
        #expect(points.restart == .snapshot(snapshot(5)))
        _ = mark(&points, at: 20, after: .seconds(1))
        var asked = 0
        func oldest() -> Int? {
            asked += 1
            return nil
        }
        points.updateNeeds(oldest: oldest(), now: start + .seconds(119))
        #expect(asked == 0 && points.needed == snapshot(5))
        points.updateNeeds(oldest: oldest(), now: start + .seconds(121))
        #expect(asked == 1 && points.needed == snapshot(20))
    }

    /// What was written down of one client lies between where all of them were left and where this process began.
    @Test(arguments: [("7:7:", 7), ("3:3:", 5), ("30:30:", 8), ("none", 5)] as [(String, UInt64)])
    func aClientGoesOnWhereItStood(text: String, xmax: UInt64) {
        var points = RecoveryPoints(window: .seconds(120))
        points.processStarted(after: snapshot(5), storedAt: snapshot(8), at: snapshot(8), now: start)
        #expect(points.restart?.clientPlace(text, upTo: points.restored) == snapshot(xmax))
        // On another history it means nothing, and where transactions are forgotten not all of it.
        points.connectionRestored(at: snapshot(6), isSameHistory: true, now: start)
        #expect(points.restart?.clientPlace(text, upTo: points.restored) == snapshot(min(xmax, 6)))
        points.connectionRestored(at: snapshot(9), isSameHistory: false, now: start)
        #expect(points.restart?.clientPlace(text, upTo: points.restored) == snapshot(9))
    }

    @Test func aPlaceOfAnotherDatabaseIsForeign() {
        var points = RecoveryPoints(window: .seconds(120))
        points.processStarted(after: snapshot(5), storedAt: nil, at: snapshot(3), now: start)
        #expect(points.restart == .foreign)
        points.connectionRestored(at: snapshot(4), isSameHistory: true, now: start)
        #expect(points.restart == .foreign)
    }

    @Test func aReconnectTakesPlacesBackThatTheServerForgot() {
        var points = RecoveryPoints(window: .seconds(120))
        points.processStarted(after: snapshot(5), storedAt: snapshot(8), at: snapshot(8), now: start)
        points.stored = snapshot(5)
        points.connectionRestored(at: snapshot(9), isSameHistory: true, now: start)
        #expect(points.restart == .snapshot(snapshot(5)))
        // It is stored anew, as another process may have written its own.
        #expect(points.stored == nil)
        points.connectionRestored(at: snapshot(4), isSameHistory: true, now: start)
        #expect(points.restart == .snapshot(snapshot(4)))
        points.connectionRestored(at: snapshot(7), isSameHistory: false, now: start)
        #expect(points.restart == .snapshot(snapshot(7)))
    }
}
