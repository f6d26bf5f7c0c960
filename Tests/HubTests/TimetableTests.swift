import Hub
import TestSupport
import Testing

@Suite struct TimetableTests {
    @Test func theEarlierTimeIsKept() {
        var table = Timetable<String>()
        table.note("a", at: 20)
        table.note("a", at: 10)
        table.note("a", at: 30)
        #expect(table.next == 10)
        #expect(table.take(at: 9) == nil)
        #expect(table.take(at: 10) == "a")
        #expect(table.take(at: 100) == nil && table.next == nil)
    }

    @Test func aTimeThatIsSetReplacesTheOneBefore() {
        var table = Timetable<String>()
        table.set("a", at: 10)
        table.set("a", at: 20)
        #expect(table.next == 20 && table.take(at: 15) == nil)
        table.set("b", at: 5)
        table.forget("b")
        #expect(table.next == 20 && table.take(at: 20) == "a")
    }

    @Test func whatWasOvertakenDoesNotPileUp() {
        var table = Timetable<Int>()
        for time in 0..<10_000 { table.set(time % 100, at: 1_000_000 - Int64(time)) }
        #expect(table.entryCount <= 2 * 100 + 64)
    }

    /// A dictionary that is searched from end to end is the model.
    @Test(arguments: 0..<20 as Range<UInt64>) func agreesWithAModel(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var (table, model) = (Timetable<Int>(), [Int: Int64]())
        var now: Int64 = 0
        for _ in 0..<2000 {
            let (subject, time) = (random.below(20), now + Int64(random.below(50)))
            switch random.below(5) {
            case 0:
                table.note(subject, at: time)
                model[subject] = min(model[subject] ?? time, time)
            case 1:
                table.set(subject, at: time)
                model[subject] = time
            case 2:
                table.forget(subject)
                model[subject] = nil
            default:
                now += Int64(random.below(5))
                while let due = table.take(at: now) {
                    #expect(model[due] == model.values.min())
                    #expect(model.removeValue(forKey: due).map { $0 <= now } == true)
                }
            }
            #expect(table.next == model.values.min())
        }
    }
}
