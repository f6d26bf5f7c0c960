import RoostClient
import Testing

@Suite struct MailboxTests {
    private func take(_ mailbox: Mailbox<Int>) async throws -> String {
        switch try await mailbox.next() {
        case .element(let element): "\(element)"
        case .missed(let count): "missed \(count)"
        case nil: "end"
        }
    }

    @Test func elementsComeInOrderThenTheEnd() async throws {
        let mailbox = Mailbox<Int>(limit: 10)
        for number in 1...3 { mailbox.put(number) }
        mailbox.finish()
        mailbox.put(4)
        var taken: [String] = []
        for _ in 0..<5 { taken.append(try await take(mailbox)) }
        #expect(taken == ["1", "2", "3", "end", "end"])
    }

    @Test func theErrorComesOnceAfterWhatWasThere() async throws {
        let mailbox = Mailbox<Int>(limit: 10)
        mailbox.put(1)
        mailbox.finish(.left)
        let first = try await take(mailbox)
        #expect(first == "1")
        await #expect(throws: RoostError.left) { try await take(mailbox) }
        let last = try await take(mailbox)
        #expect(last == "end")
    }

    @Test func theOldestGoAndAreCounted() async throws {
        let mailbox = Mailbox<Int>(limit: 2, .oldest)
        for number in 1...5 { mailbox.put(number) }
        mailbox.finish()
        var taken: [String] = []
        for _ in 0..<3 { taken.append(try await take(mailbox)) }
        #expect(taken == ["missed 3", "4", "5"])
    }

    @Test func allGoAndAreCounted() async throws {
        let mailbox = Mailbox<Int>(limit: 2, .all)
        for number in 1...5 { mailbox.put(number) }
        mailbox.finish()
        var taken: [String] = []
        for _ in 0..<2 { taken.append(try await take(mailbox)) }
        #expect(taken == ["missed 4", "5"])
    }

    @Test func whoWaitsIsWoken() async throws {
        let mailbox = Mailbox<Int>(limit: 2)
        async let taken = take(mailbox)
        await Task.yield()
        mailbox.put(1)
        let first = try await taken
        #expect(first == "1")
    }

    @Test func cancellationEndsTheWait() async throws {
        let mailbox = Mailbox<Int>(limit: 2)
        let waiting = Task { try await take(mailbox) }
        await Task.yield()
        waiting.cancel()
        let taken = try await waiting.value
        #expect(taken == "end")
        // What comes later is for whoever asks then.
        mailbox.put(1)
        let next = try await take(mailbox)
        #expect(next == "1")
    }

    @Test func manyProducersAndOneConsumer() async throws {
        let mailbox = Mailbox<Int>(limit: 100_000)
        async let sum: Int = {
            var sum = 0
            while case .element(let number) = try await mailbox.next() { sum += number }
            return sum
        }()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { for number in 1...1000 { mailbox.put(number) } } }
        }
        mailbox.finish()
        let total = try await sum
        #expect(total == 8 * 500_500)
    }
}
