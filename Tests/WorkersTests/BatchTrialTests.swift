import Testing
import Workers

/// When a batch is done row by row.
@Suite struct BatchTrialTests {
    @Test("a batch that costs its session twice is done row by row, and of its rows the one that does so is hopeless")
    func isolation() {
        var trials = BatchTrials<Int>()
        trials.sessionEnded(at: 0, rows: 3)
        #expect(trials.mostRows == nil)
        trials.sessionEnded(at: 0, rows: 3)
        #expect(trials.mostRows == 1 && !trials.isHopeless)
        trials.done(rows: 1)
        trials.sessionEnded(at: 1, rows: 1)
        #expect(!trials.isHopeless)
        trials.sessionEnded(at: 1, rows: 1)
        #expect(trials.isHopeless)
        trials.done(rows: 1)
        #expect(!trials.isHopeless && trials.mostRows == 1)
        trials.done(rows: 1)
        #expect(trials.mostRows == nil)
    }

    @Test("sessions that end at different places cost nothing")
    func outages() {
        var trials = BatchTrials<Int>()
        for row in 0..<10 {
            trials.sessionEnded(at: row, rows: 100)
            trials.done(rows: 1)
        }
        #expect(trials.mostRows == nil)
    }
}
