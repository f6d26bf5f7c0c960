import Gateway
import Testing

/// A turn gives changes one slice, however many batches come in it, and every turn gets on.
@Suite struct ChangeSliceTests {
    @Test func aTurnHasOneSlice() {
        var slice = ChangeSlice()
        let (begin, length) = (UInt64(1000), ChangeSlice.longest)
        var isOver: [Bool] = []
        for time in [0, length - 1, length, length + 1] { isOver.append(slice.isOver(at: begin + time)) }
        #expect(isOver == [false, false, true, true])
        slice.turnEnds()
        let next = begin + 2 * length
        isOver = [next, next + length - 1, next + length].map { slice.isOver(at: $0) }
        #expect(isOver == [false, false, true])
    }
}
