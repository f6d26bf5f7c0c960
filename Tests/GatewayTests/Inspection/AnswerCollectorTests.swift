import Gateway
import Synchronization
import Testing

@Suite struct AnswerCollectorTests {
    @Test func passesOnWhenTheLastHasAnswered() {
        let answers = Mutex<[[Int]]>([])
        let collector = AnswerCollector<Int>(count: 3) { parts in answers.withLock { $0.append(parts) } }
        collector.add(1)
        collector.add(2)
        #expect(answers.withLock { $0 } == [])
        collector.add(3)
        #expect(answers.withLock { $0 } == [[1, 2, 3]])
    }

    @Test func fromSeveralThreadsAtOnce() async {
        let sums = Mutex<[Int]>([])
        let collector = AnswerCollector<Int>(count: 1000) { parts in sums.withLock { $0.append(parts.reduce(0, +)) } }
        await withTaskGroup { group in
            for number in 0..<1000 { group.addTask { collector.add(number) } }
        }
        #expect(sums.withLock { $0 } == [499_500])
    }
}
