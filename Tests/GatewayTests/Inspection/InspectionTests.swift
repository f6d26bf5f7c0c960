import Gateway
import Hub
import Synchronization
import Testing
import Wire

@Suite struct CollectorTests {
    @Test func passesOnWhenTheLastHasAnswered() {
        let answers = Mutex<[[Int]]>([])
        let collector = Collector<Int>(count: 3) { parts in answers.withLock { $0.append(parts) } }
        collector.add(1)
        collector.add(2)
        #expect(answers.withLock { $0 } == [])
        collector.add(3)
        #expect(answers.withLock { $0 } == [[1, 2, 3]])
    }

    @Test func fromSeveralThreadsAtOnce() async {
        let sums = Mutex<[Int]>([])
        let collector = Collector<Int>(count: 1000) { parts in sums.withLock { $0.append(parts.reduce(0, +)) } }
        await withTaskGroup { group in
            for number in 0..<1000 { group.addTask { collector.add(number) } }
        }
        #expect(sums.withLock { $0 } == [499_500])
    }
}

@Suite struct TracerTests {
    private let head = FrameHead(topic: "realtime:a", event: "e", excerpt: "")

    @Test func keepsNothingBeforeSomebodyLooks() {
        var tracer = Tracer()
        tracer.note(1, isOutgoing: true, head, bytes: 1, queue: 0)
        #expect(tracer.isIdle)
        #expect(tracer.look(at: 1, second: 10).isEmpty)
        #expect(!tracer.isIdle)
    }

    @Test func keepsTheLastHundred() {
        var tracer = Tracer()
        _ = tracer.look(at: 1, second: 10)
        for bytes in 1...250 { tracer.note(1, isOutgoing: bytes % 2 == 0, head, bytes: bytes, queue: 0) }
        tracer.note(2, isOutgoing: true, head, bytes: 1, queue: 0)
        let entries = tracer.look(at: 1, second: 11)
        #expect(entries.map(\.bytes) == Array(151...250))
        #expect(entries.map(\.number) == Array(151...250))
        #expect(entries.last?.isOutgoing == true)
    }

    @Test func forgetsWhenNobodyLooksAnyMore() {
        var tracer = Tracer()
        _ = tracer.look(at: 1, second: 10)
        tracer.note(1, isOutgoing: true, head, bytes: 1, queue: 0)
        tracer.forget(before: 14)
        #expect(tracer.look(at: 1, second: 14).count == 1)
        tracer.forget(before: 19)
        #expect(tracer.isIdle)
        #expect(tracer.look(at: 1, second: 19).isEmpty)
    }

    /// The slot falls to another connection.
    @Test func forgetsAConnectionThatIsGone() {
        var tracer = Tracer()
        _ = tracer.look(at: 1, second: 10)
        tracer.note(1, isOutgoing: true, head, bytes: 1, queue: 0)
        tracer.forget(1)
        #expect(tracer.isIdle)
    }
}

@Suite struct ConnectionIDTests {
    @Test func isReadAsItIsWritten() {
        let id = ConnectionID(loop: 1, slot: 234, serial: 5678)
        #expect(id.description == "1-234-5678")
        #expect(ConnectionID("1-234-5678") == id)
    }

    @Test(arguments: ["", "1", "1-2", "1-2-3-4", "a-b-c", "1-99999999999-3", "--"]) func nothingElseIs(text: String) {
        #expect(ConnectionID(text) == nil)
    }
}
