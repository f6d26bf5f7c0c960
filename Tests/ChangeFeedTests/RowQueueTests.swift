import ChangeFeed
import Testing
import Wire

/// Whose rows are read next.
@Suite struct RowQueueTests {
    private let ada = RowUser(role: "authenticated", subject: "ada")
    private let linus = RowUser(role: "authenticated", subject: "linus")

    /// A queue of numbers; `#expect` changes no value.
    private final class Line {
        private var queue: RowQueue<Int>

        init(_ limits: RowLimits) { queue = RowQueue(limits) }

        var waiting: Int { queue.waiting }
        var held: Int { queue.held }

        func add(_ number: Int, of user: RowUser) -> Bool { queue.addReading(number, of: user) }
        func next() -> Int? { queue.takeNext() }
        func isRead(_ user: RowUser, holding bytes: Int) { queue.finishReading(user, holding: bytes) }
        func isTaken(_ user: RowUser, _ bytes: Int) { queue.releaseBytes(user, bytes) }
        func removeAll() -> [Int] { queue.removeAll() }
    }

    private func queue(_ change: (inout RowLimits) -> Void = { _ in }) -> Line {
        var limits = RowLimits()
        change(&limits)
        return Line(limits)
    }

    @Test func usersTakeTurns() {
        let queue = self.queue()
        for number in 0..<100 { #expect(queue.add(number, of: ada)) }
        for number in 100..<103 { #expect(queue.add(number, of: linus)) }
        #expect(queue.next() == 0)
        #expect(queue.next() == 100, "one reading of a user at a time")
        #expect(queue.next() == nil)
        queue.isRead(linus, holding: 0)
        #expect(queue.next() == 101)
        queue.isRead(ada, holding: 0)
        #expect(queue.next() == 1)
    }

    @Test func whatWaitsIsBounded() {
        let queue = self.queue {
            $0.waitingOfUser = 3
            $0.waiting = 5
        }
        #expect((0..<5).map { queue.add($0, of: ada) } == [true, true, true, false, false])
        #expect((0..<3).map { queue.add($0, of: linus) } == [true, true, false])
        #expect(queue.next() == 0)
        #expect(queue.add(9, of: ada))
        #expect(queue.waiting == 5)
        #expect(queue.removeAll().sorted() == [0, 1, 1, 2, 9])
        #expect(queue.next() == nil && queue.waiting == 0)
    }

    @Test func whoDoesNotReadHoldsUpOnlyItself() {
        let queue = self.queue { $0.heldOfUser = 1000 }
        for number in 0..<3 { #expect(queue.add(number, of: ada)) }
        #expect(queue.next() == 0)
        queue.isRead(ada, holding: 1000)
        #expect(queue.next() == nil, "its sockets have not taken what was read")
        #expect(queue.add(7, of: linus))
        #expect(queue.next() == 7)
        queue.isTaken(ada, 1)
        #expect(queue.next() == 1)
    }

    @Test func whatIsHeldOfAllIsBounded() {
        let queue = self.queue { $0.held = 1000 }
        #expect(queue.add(0, of: ada) && queue.add(1, of: linus))
        #expect(queue.next() == 0)
        queue.isRead(ada, holding: 1000)
        #expect(queue.next() == nil)
        queue.isTaken(ada, 1000)
        #expect(queue.next() == 1)
        queue.isRead(linus, holding: 0)
        #expect(queue.held == 0)
    }

    /// Tokens without a user are many people's.
    @Test func strangersShareMore() {
        let queue = self.queue {
            $0.sessions = 4
            $0.waitingOfUser = 1
        }
        let anon = RowUser(role: "anon", subject: nil)
        for number in 0..<20 { #expect(queue.add(number, of: anon)) }
        #expect(!queue.add(20, of: anon))
        #expect((0..<4).map { _ in queue.next() } == [0, 1, 2, nil], "a session is left for those who have a user")
    }
}
