import Capture
import Testing

/// When what was read is stored.
@Suite struct PacingTests {
    /// What a pacing waits when so many rows a second have come for a while, a store for every ten milliseconds of them.
    private func wait(at rate: Int) -> Duration {
        var now = ContinuousClock.now
        var pacing = StorePacing(at: now)
        for _ in 0..<300 {
            now += .milliseconds(10)
            pacing.noteStored(rows: rate / 100, at: now)
        }
        return pacing.wait
    }

    @Test func littleIsStoredAtOnceAndMuchIsGathered() {
        #expect(wait(at: 100) == .zero)
        #expect(wait(at: 500) == .zero)
        let some = wait(at: 2000)
        #expect(some > .milliseconds(3) && some < .milliseconds(9))
        #expect(wait(at: 100_000) == .milliseconds(10))
    }

    @Test func theFirstRowSaysWhenAndAStoreBeginsAnew() {
        let now = ContinuousClock.now
        var pacing = StorePacing(at: now)
        #expect(pacing.dueAt == nil)
        pacing.rowsCame(at: now)
        pacing.rowsCame(at: now + .seconds(1))
        #expect(pacing.dueAt == now)
        pacing.noteStored(rows: 2, at: now + .seconds(1))
        #expect(pacing.dueAt == nil)
    }

    @Test("a burst is forgotten")
    func quietAgain() {
        var now = ContinuousClock.now
        var pacing = StorePacing(at: now)
        pacing.noteStored(rows: 4000, at: now)
        #expect(pacing.wait > .zero)
        now += .seconds(2)
        pacing.noteStored(rows: 1, at: now)
        #expect(pacing.wait == .zero)
    }
}
