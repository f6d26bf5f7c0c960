import Testing

@testable import Clustering

@Suite struct WritePaceTests {
    private let start = ContinuousClock.now

    @Test func callsOfABusyHubKeepAPause() {
        var pace = WritePace()
        let later = start + .seconds(1)
        #expect(!pace.isHeld(at: later), "the first one goes at once")
        pace.callSent(1, at: later)
        #expect(pace.isHeld(at: later + .microseconds(600)))
        #expect(!pace.isDeaf(at: later + .microseconds(600)), "one message does not make it busy")
        pace.markBusy()
        #expect(pace.isDeaf(at: later + .microseconds(600)))
        #expect(!pace.isDeaf(at: later + .milliseconds(1)), "what waits is taken when the pause is over")
        pace.callSent(7, at: later + .milliseconds(1))
        #expect(pace.opensAt == later + .milliseconds(1) + WritePace.pause)
        #expect(pace.isDeaf(at: later + .milliseconds(1)))
        pace.callSent(1, at: later + .milliseconds(9))
        #expect(!pace.isDeaf(at: later + .milliseconds(9)), "it is quiet again")
    }
}
