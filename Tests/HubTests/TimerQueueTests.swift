import Hub
import TestSupport
import Testing

@Suite struct TimerQueueTests {
    @Test func theEarlierTimeIsKept() {
        var queue = TimerQueue<String>()
        queue.ensureDue("a", at: 20)
        queue.ensureDue("a", at: 10)
        queue.ensureDue("a", at: 30)
        #expect(queue.next == 10)
        #expect(queue.takeDue(at: 9) == nil)
        #expect(queue.takeDue(at: 10) == "a")
        #expect(queue.takeDue(at: 100) == nil && queue.next == nil)
    }

    @Test func aTimeThatIsSetReplacesTheOneBefore() {
        var queue = TimerQueue<String>()
        queue.setDue("a", at: 10)
        queue.setDue("a", at: 20)
        #expect(queue.next == 20 && queue.takeDue(at: 15) == nil)
        queue.setDue("b", at: 5)
        queue.removeSubject("b")
        #expect(queue.next == 20 && queue.takeDue(at: 20) == "a")
    }

    @Test func whatWasOvertakenDoesNotPileUp() {
        var queue = TimerQueue<Int>()
        for time in 0..<10_000 { queue.setDue(time % 100, at: 1_000_000 - Int64(time)) }
        #expect(queue.entryCount <= 2 * 100 + 64)
    }

    /// A dictionary that is searched from end to end is the model.
    @Test(arguments: 0..<20 as Range<UInt64>) func agreesWithAModel(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var (queue, model) = (TimerQueue<Int>(), [Int: Int64]())
        var now: Int64 = 0
        for _ in 0..<2000 {
            let (subject, time) = (random.below(20), now + Int64(random.below(50)))
            switch random.below(5) {
            case 0:
                queue.ensureDue(subject, at: time)
                model[subject] = min(model[subject] ?? time, time)
            case 1:
                queue.setDue(subject, at: time)
                model[subject] = time
            case 2:
                queue.removeSubject(subject)
                model[subject] = nil
            default:
                now += Int64(random.below(5))
                while let due = queue.takeDue(at: now) {
                    #expect(model[due] == model.values.min())
                    #expect(model.removeValue(forKey: due).map { $0 <= now } == true)
                }
            }
            #expect(queue.next == model.values.min())
        }
    }
}
