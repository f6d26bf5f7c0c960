import ChangeFeed
import Testing

@testable import PostgresFixtures

/// The state machine alone, on a clock of its own.
@Suite struct DoorbellTests {
    let start = ContinuousClock.now

    func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    /// Polls without rows until the lock is asked for.
    func lulled(_ bell: inout Doorbell) -> Int {
        for time in 0..<100 {
            bell.pollBegan()
            if bell.pollEnded(rows: 0, at: at(time)) == .requestLock { return time }
        }
        return -1
    }

    func asleep() -> (Doorbell, Int) {
        var bell = Doorbell(at: start)
        let time = lulled(&bell)
        #expect(bell.lockGranted(at: at(time)) == nil)
        bell.pollBegan()
        #expect(bell.pollEnded(rows: 0, at: at(time)) == nil)
        return (bell, time)
    }

    @Test func lingersBeforeItAsks() {
        var bell = Doorbell(at: start)
        bell.pollBegan()
        #expect(bell.pollEnded(rows: 3, at: at(5)) == nil)
        #expect(bell.pollAt == at(6))
        #expect(bell.pollEnded(rows: 0, at: at(24)) == nil)
        #expect(bell.pollEnded(rows: 0, at: at(25)) == .requestLock)
        #expect(bell.mode == .arming)
    }

    @Test func sleepsOnlyAfterAPollBegunUnderTheLock() {
        var bell = Doorbell(at: start)
        let time = lulled(&bell)
        bell.pollBegan()
        // The grant comes in the middle of a poll: what that poll saw does not count.
        _ = bell.lockGranted(at: at(time + 1))
        #expect(bell.mode == .dozing && bell.pollAt == at(time + 1))
    }

    @Test func safetyPollWhenAsleep() {
        let (bell, time) = asleep()
        #expect(bell.mode == .asleep && bell.pollAt == at(time + 3000))
    }

    @Test func ringWakes() {
        var (bell, time) = asleep()
        #expect(bell.ringArrived(at: at(time + 100)) == .releaseLock)
        #expect(bell.mode == .awake && bell.pollAt == at(time + 100))
    }

    @Test func ringDuringTheLastPollKeepsItAwake() {
        var bell = Doorbell(at: start)
        let time = lulled(&bell)
        _ = bell.lockGranted(at: at(time))
        bell.pollBegan()
        _ = bell.ringArrived(at: at(time))
        #expect(bell.pollEnded(rows: 0, at: at(time + 1)) == .releaseLock)
        #expect(bell.mode == .awake && bell.pollAt == at(time + 1))
    }

    @Test func rowsInTheLastPollKeepItAwake() {
        var bell = Doorbell(at: start)
        let time = lulled(&bell)
        _ = bell.lockGranted(at: at(time))
        bell.pollBegan()
        #expect(bell.pollEnded(rows: 1, at: at(time + 1)) == .releaseLock)
    }

    @Test func pollsAtGrowingIntervalsWhileItWaits() {
        var bell = Doorbell(at: start)
        var time = lulled(&bell)
        var gaps: [Int] = []
        for _ in 0..<8 {
            bell.pollBegan()
            _ = bell.pollEnded(rows: 0, at: at(time))
            let (gap, _) = (bell.pollAt - at(time)).components
            gaps.append(Int((bell.pollAt - at(time)) / .milliseconds(1)) + Int(gap) * 0)
            time += 100
        }
        #expect(gaps == [4, 8, 16, 32, 64, 64, 64, 64])
        _ = bell.ringArrived(at: at(time))
        #expect(bell.pollAt == at(time))
    }

    @Test func manyRingsEndTheWaiting() {
        var bell = Doorbell(at: start)
        let time = lulled(&bell)
        for _ in 0..<16 { #expect(bell.ringArrived(at: at(time)) == nil) }
        bell.pollBegan()
        #expect(bell.pollEnded(rows: 16, at: at(time)) == .cancelRequest)
        // The lock was granted before the cancellation arrived.
        #expect(bell.lockGranted(at: at(time)) == .releaseLock)
        bell.lockReleased()
        #expect(lulled(&bell) >= 0)
    }

    @Test func asksAgainOnlyWhenTheLockIsFree() {
        var (bell, time) = asleep()
        _ = bell.ringArrived(at: at(time))
        #expect(lulled(&bell) == -1)
        bell.lockReleased()
        bell.pollBegan()
        #expect(bell.pollEnded(rows: 0, at: at(time + 200)) == .requestLock)
    }

    @Test func missedRingIsCountedUnlessTheRingIsOnlyLate() {
        var (bell, time) = asleep()
        bell.pollBegan()
        #expect(bell.pollEnded(rows: 1, at: at(time + 5000)) == .releaseLock)
        var late = bell
        _ = late.ringArrived(at: at(time + 5001))
        for ms in [5100, 5400] {
            _ = bell.pollEnded(rows: 0, at: at(time + ms))
            _ = late.pollEnded(rows: 0, at: at(time + ms))
        }
        #expect(bell.missedRings == 1 && late.missedRings == 0)
    }
}
