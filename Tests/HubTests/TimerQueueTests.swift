import Hub
import TestSupport
import Testing

@Suite struct TimerQueueTests {
    @Test func theEarlierTimeIsKept() {
        var queue = TimerQueue<String>()
        queue.note("a", at: 20)
        queue.note("a", at: 10)
        queue.note("a", at: 30)
        #expect(queue.next == 10)
        #expect(queue.take(at: 9) == nil)
        #expect(queue.take(at: 10) == "a")
        #expect(queue.take(at: 100) == nil && queue.next == nil)
    }

    @Test func aTimeThatIsSetReplacesTheOneBefore() {
        var queue = TimerQueue<String>()
        queue.set("a", at: 10)
        queue.set("a", at: 20)
        #expect(queue.next == 20 && queue.take(at: 15) == nil)
        queue.set("b", at: 5)
        queue.forget("b")
        #expect(queue.next == 20 && queue.take(at: 20) == "a")
    }

    @Test func whatWasOvertakenDoesNotPileUp() {
        var queue = TimerQueue<Int>()
        for time in 0..<10_000 { queue.set(time % 100, at: 1_000_000 - Int64(time)) }
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
                queue.note(subject, at: time)
                model[subject] = min(model[subject] ?? time, time)
            case 1:
                queue.set(subject, at: time)
                model[subject] = time
            case 2:
                queue.forget(subject)
                model[subject] = nil
            default:
                now += Int64(random.below(5))
                while let due = queue.take(at: now) {
                    #expect(model[due] == model.values.min())
                    #expect(model.removeValue(forKey: due).map { $0 <= now } == true)
                }
            }
            #expect(queue.next == model.values.min())
        }
    }
}
