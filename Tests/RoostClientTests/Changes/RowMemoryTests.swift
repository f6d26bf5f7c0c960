import RoostClient
import TestSupport
import Testing
import Wire

@Suite struct RowMemoryTests {
    private func version(_ number: Int64?, _ time: String? = nil, _ words: String = "") -> ChangeVersion {
        let record = JSON(trusted: Array("{\"words\":\"\(words)\"}".utf8)[...])
        return ChangeVersion(
            IncomingChange(
                kind: .update, schema: "public", table: "t", record: record, old: nil,
                cursor: number.map { "w." + String($0, radix: 36) }, commitTime: time, errors: [], data: record))
    }

    private let row = RowIdentity(7)

    @Test func numbersOrderTheVersionsOfARow() {
        var memory = RowMemory(limit: 10)
        let outcome18 = memory.isNews(row, version(5))
        #expect(outcome18)
        let outcome19 = memory.isNews(row, version(5))
        #expect(!outcome19)
        let outcome20 = memory.isNews(row, version(4))
        #expect(!outcome20)
        let outcome21 = memory.isNews(row, version(6))
        #expect(outcome21)
        let outcome22 = memory.isNews(RowIdentity(8), version(4))
        #expect(outcome22)
    }

    @Test func numbersCountMoreThanClocks() {
        var memory = RowMemory(limit: 10)
        let outcome23 = memory.isNews(row, version(5, "2026-01-01T00:00:01.000Z"))
        #expect(outcome23)
        let outcome24 = memory.isNews(row, version(6, "2026-01-01T00:00:00.000Z"))
        #expect(outcome24)
        let outcome25 = memory.isNews(row, version(5, "2026-01-01T00:00:01.000Z"))
        #expect(!outcome25)
    }

    @Test func withoutNumbersTheTimeOrdersThem() {
        var memory = RowMemory(limit: 10)
        let outcome26 = memory.isNews(row, version(nil, "2026-01-01T00:00:01.000Z", "a"))
        #expect(outcome26)
        let outcome27 = memory.isNews(row, version(nil, "2026-01-01T00:00:01.000Z", "a"))
        #expect(!outcome27)
        // Two changes of one millisecond.
        let outcome28 = memory.isNews(row, version(nil, "2026-01-01T00:00:01.000Z", "b"))
        #expect(outcome28)
        let outcome29 = memory.isNews(row, version(nil, "2026-01-01T00:00:01.000Z", "a"))
        #expect(!outcome29)
        let outcome30 = memory.isNews(row, version(nil, "2026-01-01T00:00:00.999Z", "c"))
        #expect(!outcome30)
        let outcome31 = memory.isNews(row, version(nil, "2026-01-01T00:00:01.001Z", "a"))
        #expect(outcome31)
    }

    @Test func cursorsThatEndInNoNumberAreNone() {
        #expect(ChangeVersion.changeNumber(of: "w.zz") == 1295)
        for text in ["", "w", "w.", "w.-1", "w.+1", "w.é", "w.ZZZZZZZZZZZZZZZZZZZZ"] {
            #expect(ChangeVersion.changeNumber(of: text) == nil)
        }
    }

    @Test func itIsBounded() {
        var memory = RowMemory(limit: 100)
        for number in 0..<10_000 {
            let isNews = memory.isNews(RowIdentity(number), version(Int64(number)))
            #expect(isNews)
            // A row that changes all the time is never forgotten.
            _ = memory.isNews(RowIdentity(-1), version(Int64(number)))
        }
        #expect(memory.count == 100)
        let outcome32 = memory.isNews(RowIdentity(-1), version(9999))
        #expect(!outcome32)
        let outcome33 = memory.isNews(RowIdentity(9990), version(9990))
        #expect(!outcome33)
        let outcome34 = memory.isNews(RowIdentity(1), version(1))
        #expect(outcome34)
    }

    /// Streams that are repeated from random places: each version once, and never an older one after a newer one.
    @Test(arguments: 0..<20 as Range<UInt64>) func repeatsFromAnywhere(seed: UInt64) {
        var chance = SeededGenerator(seed: seed)
        let stream = (0..<300).map { (row: chance.below(10), number: Int64($0)) }
        var memory = RowMemory(limit: 64)
        var got: [(row: Int, number: Int64)] = []
        var place = 0
        while place < stream.count {
            if chance.below(100) == 0 { place = max(0, place - chance.below(50)) }
            let change = stream[place]
            if memory.isNews(RowIdentity(change.row), version(change.number)) { got.append(change) }
            place += 1
        }
        #expect(got.map(\.number) == stream.map(\.number))
    }
}
