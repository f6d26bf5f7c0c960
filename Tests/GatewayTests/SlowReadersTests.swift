import Gateway
import Hub
import Testing

/// For whom the change feed is held back, and for how long.
@Suite struct SlowReadersTests {
    /// Looks every 20 ms until nobody is waited for. Returns the time of the last look, at most `limit` later.
    private func hold(
        _ slowReaders: inout SlowReaders, from start: Int64, mostLag: Bool, limit: Int64, hasTaken: (Slot) -> Bool
    ) -> Int64 {
        var now = start
        while now < start + limit {
            for slot in slowReaders.look(now: now, holds: true, mostLag: mostLag, hasTaken: hasTaken) {
                slowReaders.remove(slot)
            }
            if slowReaders.isEmpty { break }
            now += 20
        }
        _ = slowReaders.look(now: now, holds: false, mostLag: mostLag, hasTaken: hasTaken)
        return now
    }

    @Test func aSocketThatTakesNothingCostsTheOthersAQuarterOfASecond() {
        var slowReaders = SlowReaders()
        slowReaders.add(1)
        let end = hold(&slowReaders, from: 0, mostLag: false, limit: 10_000) { _ in false }
        #expect((250...280).contains(end))
        #expect(slowReaders.held == end)
    }

    @Test func whereMostLagTheyAreWaitedForAsLongAsTheyTakeBytes() {
        var slowReaders = SlowReaders()
        for slot in 0..<10 { slowReaders.add(Slot(slot)) }
        let end = hold(&slowReaders, from: 0, mostLag: true, limit: 60_000) { _ in true }
        #expect(end >= 60_000)
        #expect(!slowReaders.isEmpty)
    }

    @Test func whereMostLagTheSilentAreWrittenOffAndTheOthersWaitedFor() {
        var slowReaders = SlowReaders()
        for slot in 0..<10 { slowReaders.add(Slot(slot)) }
        var given: [Slot] = []
        for now in stride(from: Int64(0), through: 3000, by: 20) {
            let some = slowReaders.look(now: now, holds: true, mostLag: true) { $0 != 4 }
            some.forEach { slowReaders.remove($0) }
            given += some
            if now < 1000 { #expect(given.isEmpty, "at \(now)") }
        }
        #expect(given == [4])
    }

    /// However often they lag, and whoever they are.
    @Test func aFewSlowReadersCostTheOthersASecondAndAFiftiethOfTheTime() {
        var slowReaders = SlowReaders()
        var now: Int64 = 0
        while now < 600_000 {
            slowReaders.add(Slot(now % 7))
            now = hold(&slowReaders, from: now, mostLag: false, limit: 100) { _ in true }
            slowReaders.remove(Slot(now % 7))
            for slot in 0..<7 { slowReaders.remove(Slot(slot)) }
            now += 5
        }
        #expect(slowReaders.held <= 1000 + 600_000 / 50 + 100)
        #expect(slowReaders.held >= 600_000 / 50)
    }

    /// Holds shorter than the distance of two looks count as well.
    @Test func manyShortHoldsAreHoldsToo() {
        var slowReaders = SlowReaders()
        var wasWrittenOff = 0
        for round in 0..<10_000 {
            let now = Int64(round * 10)
            slowReaders.add(1)
            let isWrittenOff = !slowReaders.look(now: now, holds: true, mostLag: false, hasTaken: { _ in true }).isEmpty
            if isWrittenOff { wasWrittenOff += 1 }
            slowReaders.remove(1)
            let end = isWrittenOff ? now : now + 5
            _ = slowReaders.look(now: end, holds: true, mostLag: false, hasTaken: { _ in true })
        }
        #expect(slowReaders.held <= 1000 + 100_000 / 50 + 10)
        #expect(wasWrittenOff > 5000)
    }

    @Test func timeInWhichThereIsNothingToHoldBackIsFree() {
        var slowReaders = SlowReaders()
        slowReaders.add(1)
        for now in stride(from: Int64(0), to: 5000, by: 20) {
            let given = slowReaders.look(now: now, holds: false, mostLag: false) { _ in false }
            #expect(given.isEmpty)
        }
        #expect(slowReaders.held == 0)
        let end = hold(&slowReaders, from: 5000, mostLag: false, limit: 10_000) { _ in false }
        #expect(end >= 5250)
    }

    @Test func thoseWhoLeaveAreForgotten() {
        var slowReaders = SlowReaders()
        for slot in 0..<5 { slowReaders.add(Slot(slot)) }
        for slot in [Slot(1), 4, 0] { slowReaders.remove(slot) }
        slowReaders.remove(1)
        var asked: Set<Slot> = []
        _ = slowReaders.look(now: 0, holds: true, mostLag: false) { slot in
            asked.insert(slot)
            return true
        }
        #expect(asked == [2, 3])
        slowReaders.remove(2)
        slowReaders.remove(3)
        #expect(slowReaders.isEmpty)
    }
}
