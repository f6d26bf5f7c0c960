import Testing
import Workers

/// When a batch is done row by row.
@Suite struct BatchTrialTests {
    @Test("a batch that costs its session twice is done row by row, and of its rows the one that does so is hopeless")
    func isolation() {
        var trials = BatchTrials<Int>()
        let now = ContinuousClock.now
        trials.batchFailed(at: 0, rows: 3, at: now)
        #expect(trials.mostRows == nil)
        trials.batchFailed(at: 0, rows: 3, at: now)
        #expect(trials.mostRows == 1 && !trials.isHopeless)
        trials.batchSucceeded(rows: 1)
        trials.batchFailed(at: 1, rows: 1, at: now)
        #expect(!trials.isHopeless)
        trials.batchFailed(at: 1, rows: 1, at: now)
        #expect(trials.isHopeless)
        trials.batchSucceeded(rows: 1)
        #expect(!trials.isHopeless && trials.mostRows == 1)
        trials.batchSucceeded(rows: 1)
        #expect(trials.mostRows == nil)
    }

    @Test("sessions that end at different places cost nothing")
    func outages() {
        var trials = BatchTrials<Int>()
        let now = ContinuousClock.now
        for row in 0..<10 {
            trials.batchFailed(at: row, rows: 100, at: now)
            trials.batchSucceeded(rows: 1)
        }
        #expect(trials.mostRows == nil)
    }

    @Test("an error that may pass counts once it has come again for some time")
    func patience() {
        var trials = BatchTrials<Int>(patience: .seconds(15))
        let begin = ContinuousClock.now
        func fail(after seconds: Int, rows: Int) {
            trials.batchFailed(at: 7, rows: rows, mayPass: true, at: begin + .seconds(seconds))
        }
        for second in 0..<15 { fail(after: second, rows: 2) }
        #expect(trials.mostRows == nil)
        fail(after: 15, rows: 2)
        #expect(trials.mostRows == 1 && !trials.isHopeless)
        fail(after: 16, rows: 1)
        fail(after: 30, rows: 1)
        #expect(!trials.isHopeless, "it is another batch, whose time begins")
        fail(after: 31, rows: 1)
        #expect(trials.isHopeless)
        trials.batchSucceeded(rows: 1)
        #expect(!trials.isHopeless && trials.mostRows == 1)
    }

    @Test("a refusal lasts that comes several times, at one place, over all the time of patience")
    func refusals() {
        var refusals = RepeatedRefusal<Int>(patience: .seconds(20))
        let begin = ContinuousClock.now
        refusals.requestRefused(at: 1, at: begin)
        refusals.requestRefused(at: 1, at: begin + .seconds(25))
        #expect(!refusals.isLasting(at: begin + .seconds(26)), "twice may have any reason")
        refusals.requestRefused(at: 1, at: begin + .seconds(26))
        #expect(refusals.isLasting(at: begin + .seconds(26)))
        refusals.requestRefused(at: 2, at: begin + .seconds(27))
        for second in 28..<40 { refusals.requestRefused(at: 2, at: begin + .seconds(second)) }
        #expect(!refusals.isLasting(at: begin + .seconds(40)))
        #expect(refusals.isLasting(at: begin + .seconds(47)))
        refusals.requestPassed()
        #expect(!refusals.isLasting(at: begin + .seconds(100)))
    }
}
