import RoostClient
import Testing

@Suite struct BackoffTests {
    @Test func ceilingsDoubleUpToTheCap() {
        var backoff = Backoff(Backoff.Policy())
        let ceilings = (0..<40).map { _ in
            defer { _ = backoff.next(0.5) }
            return backoff.ceiling
        }
        #expect(ceilings.prefix(6) == [1, 2, 4, 8, 15, 15].map { Duration.seconds($0) }[...])
        #expect(ceilings.last == .seconds(15))
    }

    @Test func jitterIsFull() {
        var low = Backoff(Backoff.Policy())
        var high = low
        let outcome35 = low.next(0)
        #expect(outcome35 == .zero)
        let outcome36 = high.next(0.75) == .milliseconds(750)
        #expect(outcome36)
        let outcome37 = high.next(0.75) == .milliseconds(1500)
        #expect(outcome37)
    }

    @Test func onlyWhatWasStableStartsOver() {
        var backoff = Backoff(Backoff.Policy())
        for _ in 0..<3 { _ = backoff.next(0.5) }
        backoff.ended(after: .seconds(9))
        #expect(backoff.ceiling == .seconds(8))
        backoff.ended(after: .seconds(10))
        #expect(backoff.ceiling == .seconds(1))
    }
}
