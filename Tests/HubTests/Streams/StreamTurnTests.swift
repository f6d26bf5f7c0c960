import Hub
import Streams
import TestSupport
import Testing
import Wire

/// Members of a stream's channel when its name is opened for the next turn.
@Suite struct StreamTurnTests {
    private static let topic = "realtime:stream:reply/1"
    private let shelf = StreamShelf()

    private func frame(_ slots: String, _ payload: String) -> String {
        "\(slots) ⇐ #4 \(Self.topic) stream json {\(payload)}"
    }

    @discardableResult private func join(_ stage: Stage, _ slot: Slot, _ config: String = "{}") throws -> [String] {
        stage.connect(slot)
        return try stage.joinPrivate(Self.topic, slot, config).filter { $0.contains("⇐") }
    }

    private func end(_ stream: StreamBuffer, on stage: Stage) throws -> [String] {
        try stage.set(.ended(StreamEnding(.complete, at: 1)), of: stream)
    }

    @Test("The next turn begins at zero under another id")
    func theNextTurnBegins() throws {
        let stage = Stage(streams: shelf)
        let first = try shelf.add("reply/1")
        _ = first.append(Array("one".utf8))
        try join(stage, 1)
        _ = try end(first, on: stage)
        try stage.tick(after: 40)
        let second = try shelf.add("reply/1", id: 8)
        #expect(
            try stage.append("two", to: second) == [
                frame("1", #""id":"8","at":0,"delta":"two","next":3,"status":"open""#)
            ])
    }

    @Test("Whoever had no room is shown the rest of a turn, and its end, before the next one")
    func theRestComesFirst() throws {
        let stage = Stage(streams: shelf)
        var full: Set<Slot> = []
        stage.hub.askForRoom(hasRoom: { !full.contains($0) }, awaitRoom: { _ in })
        let first = try shelf.add("reply/1")
        _ = first.append(Array("on".utf8))
        try join(stage, 1)
        try stage.tick(after: 40)
        full = [1]
        #expect(try stage.append("e", to: first).isEmpty)
        #expect(try end(first, on: stage).isEmpty)
        let second = try shelf.add("reply/1", id: 8)
        #expect(try stage.append("two", to: second).isEmpty)
        full = []
        #expect(
            try stage.watch { $0.roomBecameFree(1) } == [
                frame("1", #""id":"7","at":2,"delta":"e","next":3,"status":"complete""#),
                frame("1", #""id":"8","at":0,"delta":"two","next":3,"status":"open""#),
            ])
    }

    @Test("Whoever knows a turn waits for another than that")
    func waitsForAnother() throws {
        let stage = Stage(streams: shelf)
        let first = try shelf.add("reply/1")
        _ = first.append(Array("one".utf8))
        #expect(try join(stage, 1, #"{"stream":{"after":"7"}}"#).isEmpty)
        #expect(try end(first, on: stage).isEmpty)
        let second = try shelf.add("reply/1", id: 8)
        #expect(
            try stage.append("two", to: second) == [
                frame("1", #""id":"8","at":0,"delta":"two","next":3,"status":"open""#)
            ])
    }
}
