import Push
import Testing
import Wire

/// When phones are told what their icons show.
@Suite struct BadgeQueueTests {
    @Test("Whoever reads on is told of once, at the earliest of his times")
    func once() {
        var queue = BadgeQueue()
        #expect(queue.nextDue == nil)
        queue.put("ada", at: 100)
        queue.put("bob", at: 50)
        queue.put("ada", at: 170)
        #expect(queue.nextDue == 50)
        #expect(queue.take(at: 49, limit: 10) == [])
        #expect(queue.take(at: 100, limit: 1) == ["bob"], "the longest due first")
        #expect(queue.take(at: 100, limit: 10) == ["ada"])
        #expect(queue.take(at: 1000, limit: 10) == [])
    }

    @Test("It is bounded, and keeps whom it has")
    func bounded() {
        var queue = BadgeQueue()
        for number in 0..<BadgeQueue.capacity + 10 { queue.put(Name("user \(number)"), at: 1) }
        queue.put("user 0", at: 0)
        #expect(queue.take(at: 0, limit: 10) == ["user 0"])
        #expect(queue.take(at: 1, limit: .max).count == BadgeQueue.capacity - 1)
    }
}
