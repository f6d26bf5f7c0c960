import Foundation
import RoostClient
import Testing
import Wire

/// What an app reads of a stream: from the frames of a socket to its sequences.
@Suite(.timeLimit(.minutes(1))) struct StreamSequencesTests {
    private let hub = ScriptedHub("realtime:stream:reply/1")

    private func stream() throws -> RoostStream {
        let url = try #require(URL(string: "ws://127.0.0.1"))
        let configuration = RoostClient.Configuration { "token" }
        return RoostClient(url: url, configuration: configuration, transport: hub).stream("reply/1")
    }

    private func say(_ facts: String) { hub.say("broadcast", "{\"event\":\"stream\",\"payload\":{\(facts)}}") }

    /// What comes of all that was said, once there is `count` of it.
    private func take(_ updates: StreamUpdates, _ count: Int) async throws -> [StreamUpdate] {
        var found: [StreamUpdate] = []
        for try await update in updates {
            found.append(update)
            if found.count == count { break }
        }
        return found
    }

    @Test func theLoopJoinsByItselfAndEndsWithTheStream() async throws {
        let stream = try stream()
        let updates = stream.updates
        try await stream.channel.subscribe()
        say(#""id":"7","at":0,"delta":"Grüße","next":7,"status":"open""#)
        #expect(try await take(updates, 3) == [.begins(id: "7"), .text("Grüße"), .state(.open)])
        say(#""id":"7","at":7,"next":7,"status":"stalled""#)
        #expect(try await take(updates, 1) == [.state(.stalled)])
        say(#""id":"7","at":7,"delta":"!","next":8,"status":"complete","row":{"id":5}"#)
        let rest = try await take(updates, 100)
        let end = StreamEnd(reason: .complete, offset: 8, row: Data(#"{"id":5}"#.utf8))
        #expect(rest == [.text("!"), .ended(end)])
        #expect(try end.decodeRow(as: [String: Int].self) == ["id": 5])
        // One that is made later has all of it, too.
        #expect(try await take(stream.updates, 100) == [.begins(id: "7"), .text("Grüße!"), .ended(end)])
    }

    @Test func whoIsSlowGetsTheSameInLargerPieces() async throws {
        let stream = try stream()
        let (updates, seen) = (stream.updates, stream.updates)
        try await stream.channel.subscribe()
        for (at, letter) in "abcdefgh".enumerated() {
            say("\"id\":\"7\",\"at\":\(at),\"delta\":\"\(letter)\",\"next\":\(at + 1)")
        }
        var text = ""
        for try await update in seen {
            if case .text(let piece) = update { text += piece }
            if text == "abcdefgh" { break }
        }
        #expect(try await take(updates, 2) == [.begins(id: "7"), .text("abcdefgh")])
    }

    @Test func messagesComeOneByOneAndBytesAsTheyAre() async throws {
        let stream = try stream()
        let updates = stream.updates
        try await stream.channel.subscribe()
        say(#""id":"7","at":0,"messages":[{"n":1},{"n":2}],"next":16"#)
        let found = try await take(updates, 3)
        guard case .message(let first) = found[1], case .message(let second) = found[2] else {
            Issue.record("\(found)")
            return
        }
        #expect(try first.decode(as: [String: Int].self) == ["n": 1])
        #expect(try second.decode(as: [String: Int].self) == ["n": 2])
        say(#""id":"8","at":0,"base64":"AP8B","next":3"#)
        #expect(try await take(updates, 1) == [.state(.open)])
        #expect(try await take(updates, 2) == [.begins(id: "8"), .bytes(Data([0, 255, 1]))])
    }

    @Test func aSequenceBehindADeletionWaitsForTheNextStream() async throws {
        let stream = try stream()
        let updates = stream.updates
        try await stream.channel.subscribe()
        say(#""id":"7","at":0,"delta":"a","next":1,"status":"open""#)
        say(#""id":"7","status":"deleted""#)
        #expect(try await take(updates, 100).last == .ended(StreamEnd(reason: .deleted, offset: 1, row: nil)))
        let next = stream.updates
        say(#""id":"8","at":0,"delta":"b","next":1,"status":"complete""#)
        #expect(
            try await take(next, 100) == [
                .begins(id: "8"), .text("b"), .ended(StreamEnd(reason: .complete, offset: 1, row: nil)),
            ])
    }

    @Test func aViewIsGivenTheWholeText() async throws {
        let stream = try stream()
        var texts = stream.texts.makeAsyncIterator()
        try await stream.channel.subscribe()
        say(#""id":"7","at":0,"delta":"Hel","next":3,"status":"open""#)
        #expect(try await texts.next()?.text == "Hel")
        say(#""id":"7","at":3,"delta":"lo","next":5"#)
        let second = try #require(try await texts.next())
        #expect(second.text == "Hello" && second.state == .open && second.end == nil)
        say(#""id":"9","at":0,"delta":"A","next":1,"status":"cancelled""#)
        let last = try #require(try await texts.next())
        #expect(last.text == "A" && last.id == "9" && last.end?.reason == .cancelled)
        #expect(try await texts.next() == nil)
    }

    @Test func leavingEndsTheLoop() async throws {
        let stream = try stream()
        let updates = stream.updates
        try await stream.channel.subscribe()
        say(#""id":"7","at":0,"delta":"a","next":1,"status":"open""#)
        #expect(try await take(updates, 3).count == 3)
        await stream.leave()
        #expect(try await take(updates, 1).isEmpty)
    }
}
