import Ops
import Testing

@Suite struct MemoryReturnTests {
    /// What is decided where so many megabytes are spare at one look after the other.
    private func looks(_ memory: inout SpareMemory, _ megabytes: Int...) -> [Bool] {
        var due: [Bool] = []
        for spare in megabytes { due.append(memory.isDue(spare: spare * 1_048_576)) }
        return due
    }

    @Test func whatIsSpareForAWhileIsGivenBack() {
        var memory = SpareMemory()
        #expect(looks(&memory, 10, 10, 100, 100) == [false, false, false, true])
        memory.wasReturned(leaving: 3_000_000)
        #expect(looks(&memory, 3, 3, 3) == [false, false, false])
    }

    @Test func aBurstIsLeftAlone() {
        var memory = SpareMemory()
        #expect(looks(&memory, 100, 10, 100, 10) == [false, false, false, false])
    }

    @Test func whatCannotBeGivenBackIsNotTriedForEver() {
        var memory = SpareMemory()
        #expect(looks(&memory, 100, 100) == [false, true])
        memory.wasReturned(leaving: 90 * 1_048_576)
        #expect(looks(&memory, 95, 95, 95) == [false, false, false])
        // Until it has become more, or less and then more.
        #expect(looks(&memory, 110, 110) == [false, true])
        memory.wasReturned(leaving: 90 * 1_048_576)
        #expect(looks(&memory, 5, 30, 30) == [false, false, true])
    }
}
