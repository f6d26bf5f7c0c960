import Hub
import Testing
import Wire

/// How long a socket is left unread. What it sent is handled all the same, which is the gateway's part.
@Suite struct PauseTests {
    private func hub(messages: Int = 0, bytes: Int = 0) -> Hub {
        var limits = HubLimits()
        limits.messagesPerSecond = messages
        limits.bytesPerSecond = bytes
        let stage = Stage(limits: limits)
        stage.connect(1)
        stage.connect(2)
        return stage.hub
    }

    @Test func twoSecondsOfMessagesAtOnceThenOneByOne() {
        let hub = hub(messages: 10)
        for _ in 0..<20 { #expect(hub.pause(after: 5, endsMessage: true, from: 1, at: 7) == 0) }
        #expect(hub.pause(after: 5, endsMessage: true, from: 1, at: 7) == 100)
        #expect(hub.pause(after: 5, endsMessage: true, from: 1, at: 107) == 100)
        #expect(hub.pause(after: 5, endsMessage: true, from: 2, at: 107) == 0, "another socket")
        #expect(hub.slowed == [.messagesPerSecond: 2])
    }

    @Test func piecesAreNoMessages() {
        let hub = hub(messages: 1)
        for _ in 0..<100 { #expect(hub.pause(after: 256, endsMessage: false, from: 1, at: 0) == 0) }
    }

    @Test func bytesCountInPiecesToo() {
        let hub = hub(bytes: 1000)
        #expect(hub.pause(after: 2000, endsMessage: false, from: 1, at: 0) == 0)
        #expect(hub.pause(after: 256, endsMessage: false, from: 1, at: 0) == 256)
        #expect(hub.pause(after: 256, endsMessage: true, from: 1, at: 256) == 256)
        #expect(hub.slowed == [.bytesPerSecond: 2])
    }

    @Test func theLongerPauseCounts() {
        let hub = hub(messages: 1, bytes: 1000)
        for _ in 0..<2 { _ = hub.pause(after: 1000, endsMessage: true, from: 1, at: 0) }
        #expect(hub.pause(after: 100, endsMessage: true, from: 1, at: 0) == 1000)
        #expect(hub.pause(after: 3900, endsMessage: false, from: 1, at: 0) == 4000)
    }

    @Test func noRateNoPause() {
        let hub = hub()
        for _ in 0..<1000 { #expect(hub.pause(after: 1_000_000, endsMessage: true, from: 1, at: 0) == 0) }
        #expect(hub.slowed.isEmpty)
    }
}
