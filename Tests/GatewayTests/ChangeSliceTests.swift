import Gateway
import Testing

/// A turn gives changes one slice, however many batches come in it, and every turn gets on.
@Suite struct ChangeSliceTests {
    @Test func aTurnHasOneSlice() {
        var slice = ChangeSlice()
        let (begin, length) = (UInt64(1000), ChangeSlice.longest)
        var isOver: [Bool] = []
        for time in [0, length - 1, length, length + 1] {
            isOver.append(slice.isOver(at: begin + time, ofRecovery: false))
        }
        #expect(isOver == [false, false, true, true])
        slice.turnEnds()
        let next = begin + 2 * length
        isOver = [next, next + length - 1, next + length].map { slice.isOver(at: $0, ofRecovery: false) }
        #expect(isOver == [false, false, true])
    }

    @Test("What members missed has a shorter slice, and changes that come live go on in the same turn")
    func recoveriesHaveLess() {
        var slice = ChangeSlice()
        let (begin, length) = (UInt64(1000), ChangeSlice.longestOfRecovery)
        var isOver = [0, length - 1, length].map { slice.isOver(at: begin + $0, ofRecovery: true) }
        isOver.append(slice.isOver(at: begin + length, ofRecovery: false))
        #expect(isOver == [false, false, true, false])
    }
}
