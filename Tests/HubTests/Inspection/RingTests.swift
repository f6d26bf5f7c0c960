import Hub
import Testing

@Suite struct RingTests {
    @Test(arguments: 1...7, 0...20) func keepsTheLastOnes(capacity: Int, count: Int) {
        var ring = Ring<Int>(capacity: capacity)
        for number in 0..<count { ring.append(number) }
        #expect(ring.elements == Array((0..<count).suffix(capacity)))
        #expect(ring.count == min(count, capacity))
        #expect(ring.last == (0..<count).last)
    }
}
