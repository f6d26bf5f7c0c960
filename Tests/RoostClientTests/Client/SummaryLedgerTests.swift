import Foundation
import RoostClient
import TestSupport
import Testing

@Suite struct SummaryLedgerTests {
    private func at(_ seconds: Double) -> Date { Date(timeIntervalSince1970: seconds) }

    private func update(_ id: String, _ seconds: Double, _ state: String) -> SummaryVerdict<String> {
        .update(Summary(activityID: id, timestamp: at(seconds), state: state))
    }

    @Test func onlyWhatIsNewerIsShown() {
        var ledger = SummaryLedger<String>()
        let verdicts = [(10, "a"), (12, "b"), (11, "late"), (12, "again"), (13, "c")].map {
            ledger.offer(activityID: "one", timestamp: at($0), state: $1)
        }
        #expect(verdicts == [update("one", 10, "a"), update("one", 12, "b"), .stale, .stale, update("one", 13, "c")])
        #expect(ledger.latest(activityID: "one")?.state == "c")
        #expect(ledger.droppedCount == 2)
    }

    @Test func eachActivityHasItsOwnTime() {
        var ledger = SummaryLedger<String>()
        _ = ledger.offer(activityID: "one", timestamp: at(100), state: "one")
        let verdict = ledger.offer(activityID: "two", timestamp: at(50), state: "two")
        #expect(verdict == update("two", 50, "two"))
        #expect(ledger.latest(activityID: "one")?.state == "one")
        #expect(ledger.latest(activityID: "three") == nil)
    }

    @Test func whatHasEndedStaysEnded() {
        var ledger = SummaryLedger<String>()
        _ = ledger.offer(activityID: "one", timestamp: at(10), state: "a")
        let early = ledger.end(activityID: "one", timestamp: at(9), state: "too early")
        #expect(early == .stale)
        let end = ledger.end(activityID: "one", timestamp: at(10), state: "over")
        #expect(end == update("one", 10, "over"), "in the same second as the last update")
        let late = [
            ledger.offer(activityID: "one", timestamp: at(99), state: "zombie"),
            ledger.end(activityID: "one", timestamp: at(99), state: "over again"),
        ]
        #expect(late == [.ended, .ended])
        #expect(ledger.hasEnded(activityID: "one") && ledger.latest(activityID: "one")?.state == "over")
        #expect(ledger.droppedCount == 3)
    }

    @Test func whatWasForgottenDoesNotComeBackToLife() {
        var ledger = SummaryLedger<String>(capacity: 2)
        _ = ledger.offer(activityID: "lives", timestamp: at(1), state: "a")
        _ = ledger.end(activityID: "ended", timestamp: at(20), state: "b")
        _ = ledger.offer(activityID: "third", timestamp: at(30), state: "c")
        #expect(ledger.latest(activityID: "ended") == nil && ledger.latest(activityID: "lives") != nil)
        let verdict = ledger.offer(activityID: "ended", timestamp: at(20), state: "zombie")
        #expect(verdict == .stale)
        // Those that are known go on on their own time.
        let older = ledger.offer(activityID: "lives", timestamp: at(2), state: "d")
        #expect(older == update("lives", 2, "d"))
    }

    @Test func aTimeThatIsNoNumberIsNotNewer() {
        var ledger = SummaryLedger<String>()
        let verdict = ledger.offer(activityID: "one", timestamp: at(.nan), state: "a")
        #expect(verdict == .stale)
        let next = ledger.offer(activityID: "one", timestamp: at(1), state: "b")
        #expect(next == update("one", 1, "b"))
    }

    /// In any order and any number of times: what is shown is the newest of what has arrived, or the first end that
    /// was not older than it.
    @Test(arguments: 0..<50) func agreesWithAPlainRule(_ seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var ledger = SummaryLedger<Int>()
        var newest: [String: (time: Int, state: Int)] = [:]
        var ended: Set<String> = []
        for state in 0..<400 {
            let (id, time, isLast) = ("\(random.below(4))", random.below(100), random.below(60) == 0)
            let verdict =
                isLast
                ? ledger.end(activityID: id, timestamp: at(Double(time)), state: state)
                : ledger.offer(activityID: id, timestamp: at(Double(time)), state: state)
            let isNewer = newest[id].map { isLast ? time >= $0.time : time > $0.time } ?? true
            if isNewer, !ended.contains(id) {
                newest[id] = (time, state)
                if isLast { ended.insert(id) }
                #expect(verdict == .update(Summary(activityID: id, timestamp: at(Double(time)), state: state)))
            }
            for (id, shown) in newest { #expect(ledger.latest(activityID: id)?.state == shown.state) }
        }
    }
}
