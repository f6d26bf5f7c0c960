import Gateway
import Hub
import Synchronization
import Testing

/// Changes leave in the order they came, and the feed hears when a batch is through.
@Suite struct ChangeQueueTests {
    @Test func theFeedIsToldWhenTheLastOfABatchWasAskedBehind() {
        var queue = ChangeQueue()
        let taken = Mutex<[Int]>([])
        for batch in 0..<3 {
            let events: [FeedEvent] = (0..<batch).map { .boundary(batch * 10 + $0) }
            queue.append(ChangeQueue.Batch(events) { taken.withLock { $0.append(batch) } })
        }
        var marks: [Int] = []
        var takenBefore: [[Int]] = []
        while let item = queue.next() {
            switch item {
            case .event(.boundary(let mark)):
                marks.append(mark)
                takenBefore.append(taken.withLock { $0 })
            case .event: Issue.record("an event that was not put in")
            case .end(let batch): batch.whenTaken()
            }
        }
        #expect(marks == [10, 20, 21])
        #expect(takenBefore == [[0], [0, 1], [0, 1]])
        #expect(taken.withLock { $0 } == [0, 1, 2])
        #expect(queue.isEmpty)
    }
}
