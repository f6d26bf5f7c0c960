import Gateway
import Hub
import Testing

/// For whom the change feed is held back, and for how long.
@Suite struct LaggardsTests {
    /// Looks every 20 ms until nobody is waited for. Returns the time of the last look, at most `limit` later.
    private func hold(
        _ laggards: inout Laggards, from start: Int64, mostLag: Bool, limit: Int64, hasTaken: (Slot) -> Bool
    ) -> Int64 {
        var now = start
        while now < start + limit {
            for slot in laggards.look(now: now, holds: true, mostLag: mostLag, hasTaken: hasTaken) {
                laggards.remove(slot)
            }
            if laggards.isEmpty { break }
            now += 20
        }
        _ = laggards.look(now: now, holds: false, mostLag: mostLag, hasTaken: hasTaken)
        return now
    }

    @Test func aSocketThatTakesNothingCostsTheOthersAQuarterOfASecond() {
        var laggards = Laggards()
        laggards.add(1)
        let end = hold(&laggards, from: 0, mostLag: false, limit: 10_000) { _ in false }
        #expect((250...280).contains(end))
        #expect(laggards.held == end)
    }

    @Test func whereMostLagTheyAreWaitedForAsLongAsTheyTakeBytes() {
        var laggards = Laggards()
        for slot in 0..<10 { laggards.add(Slot(slot)) }
        let end = hold(&laggards, from: 0, mostLag: true, limit: 60_000) { _ in true }
        #expect(end >= 60_000)
        #expect(!laggards.isEmpty)
    }

    @Test func whereMostLagTheSilentAreWrittenOffAndTheOthersWaitedFor() {
        var laggards = Laggards()
        for slot in 0..<10 { laggards.add(Slot(slot)) }
        var given: [Slot] = []
        for now in stride(from: Int64(0), through: 3000, by: 20) {
            let some = laggards.look(now: now, holds: true, mostLag: true) { $0 != 4 }
            some.forEach { laggards.remove($0) }
            given += some
            if now < 1000 { #expect(given.isEmpty, "at \(now)") }
        }
        #expect(given == [4])
    }

    /// However often they lag, and whoever they are.
    @Test func aFewSlowReadersCostTheOthersASecondAndAFiftiethOfTheTime() {
        var laggards = Laggards()
        var now: Int64 = 0
        while now < 600_000 {
            laggards.add(Slot(now % 7))
            now = hold(&laggards, from: now, mostLag: false, limit: 100) { _ in true }
            laggards.remove(Slot(now % 7))
            for slot in 0..<7 { laggards.remove(Slot(slot)) }
            now += 5
        }
        #expect(laggards.held <= 1000 + 600_000 / 50 + 100)
        #expect(laggards.held >= 600_000 / 50)
    }

    /// Holds shorter than the distance of two looks count as well.
    @Test func manyShortHoldsAreHoldsToo() {
        var laggards = Laggards()
        var wasWrittenOff = 0
        for round in 0..<10_000 {
            let now = Int64(round * 10)
            laggards.add(1)
            let isWrittenOff = !laggards.look(now: now, holds: true, mostLag: false, hasTaken: { _ in true }).isEmpty
            if isWrittenOff { wasWrittenOff += 1 }
            laggards.remove(1)
            let end = isWrittenOff ? now : now + 5
            _ = laggards.look(now: end, holds: true, mostLag: false, hasTaken: { _ in true })
        }
        #expect(laggards.held <= 1000 + 100_000 / 50 + 10)
        #expect(wasWrittenOff > 5000)
    }

    @Test func timeInWhichThereIsNothingToHoldBackIsFree() {
        var laggards = Laggards()
        laggards.add(1)
        for now in stride(from: Int64(0), to: 5000, by: 20) {
            let given = laggards.look(now: now, holds: false, mostLag: false) { _ in false }
            #expect(given.isEmpty)
        }
        #expect(laggards.held == 0)
        let end = hold(&laggards, from: 5000, mostLag: false, limit: 10_000) { _ in false }
        #expect(end >= 5250)
    }

    @Test func thoseWhoLeaveAreForgotten() {
        var laggards = Laggards()
        for slot in 0..<5 { laggards.add(Slot(slot)) }
        for slot in [Slot(1), 4, 0] { laggards.remove(slot) }
        laggards.remove(1)
        var asked: Set<Slot> = []
        _ = laggards.look(now: 0, holds: true, mostLag: false) { slot in
            asked.insert(slot)
            return true
        }
        #expect(asked == [2, 3])
        laggards.remove(2)
        laggards.remove(3)
        #expect(laggards.isEmpty)
    }
}
