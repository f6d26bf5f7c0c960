import Gateway
import Hub
import Testing
import Wire

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
