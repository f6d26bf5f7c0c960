import Foundation
import RoostClient
import Testing
import Wire

/// Where a reader is in its stream, frame by frame.
@Suite struct WatchedStreamTests {
    private var stream = WatchedStream()

    private mutating func take(_ frame: String) throws -> WatchedStream.Outcome {
        stream.receiveFrame(try JSON(parsing: Array("{\(frame)}".utf8)))
    }

    private mutating func news(_ frame: String) throws -> StreamNews {
        let outcome = try take(frame)
        guard case .news(let news) = outcome else { throw Unexpected(outcome: outcome) }
        return news
    }

    private struct Unexpected: Error { let outcome: WatchedStream.Outcome }

    private var request: String { String(decoding: stream.request(gathering: nil), as: UTF8.self) }

    private func text(_ news: StreamNews) -> String { String(decoding: news.bytes, as: UTF8.self) }

    @Test mutating func itGoesOnWhereTheLastFrameEnded() throws {
        #expect(request == "{}")
        #expect(
            String(decoding: stream.request(gathering: .milliseconds(100)), as: UTF8.self) == #"{"every_ms":100}"#)
        #expect(String(decoding: stream.request(gathering: .seconds(1e20)), as: UTF8.self) == #"{"every_ms":500}"#)
        let first = try news(#""id":"7","at":0,"delta":"Grüße","next":7,"status":"open""#)
        #expect(first.begins && first.form == .text && text(first) == "Grüße" && first.state == .open)
        #expect(request == #"{"id":"7","at":7}"#)
        let second = try news(#""id":"7","at":7,"delta":"!","next":8"#)
        #expect(!second.begins && text(second) == "!" && second.state == nil && second.end == nil)
    }

    @Test mutating func behindAJoinTheSameStateIsNoNews() throws {
        _ = try news(#""id":"7","at":0,"delta":"a","next":1,"status":"stalled""#)
        stream.joinSucceeded()
        #expect(try take(#""id":"7","at":1,"delta":"","next":1,"status":"stalled""#) == .nothing)
        #expect(try news(#""id":"7","at":1,"next":1,"status":"open""#).state == .open)
    }

    @Test mutating func anotherStreamOfTheNameBegins() throws {
        _ = try news(#""id":"7","at":0,"delta":"old","next":3,"status":"complete""#)
        stream.joinSucceeded()
        let other = try news(#""id":"8","at":0,"delta":"n","next":1,"status":"open""#)
        #expect(other.begins && other.id == "8" && text(other) == "n" && other.state == .open)
    }

    /// Of some streams only the newest is kept: who comes late, or is too slow, begins where that does.
    @Test mutating func whatIsNotKeptIsSkipped() throws {
        let late = try news(#""id":"7","at":500,"skipped":true,"base64":"AAE=","next":502,"status":"open""#)
        #expect(late.begins && late.bytes == [0, 1] && request == #"{"id":"7","at":502}"#)
        #expect(try !news(#""id":"7","at":502,"base64":"Ag==","next":503"#).begins)
        let slow = try news(#""id":"7","at":900,"skipped":true,"base64":"Aw==","next":901"#)
        #expect(slow.begins && slow.bytes == [3] && request == #"{"id":"7","at":901}"#)
        guard case .misfit = try take(#""id":"7","at":950,"base64":"Aw==","next":951"#) else {
            Issue.record("nobody said that something is skipped")
            return
        }
    }

    /// The machine of a hub that does not sync crashed: what follows is not what was there.
    @Test mutating func aHubThatDoesNotKnowOurPlaceBeginsAnew() throws {
        _ = try news(#""id":"7","at":0,"delta":"abc","next":3,"status":"open""#)
        stream.joinSucceeded()
        let again = try news(#""id":"7","at":0,"delta":"ab","next":2,"status":"open""#)
        #expect(again.begins && text(again) == "ab" && request == #"{"id":"7","at":2}"#)
    }

    @Test(arguments: [
        #""id":"7","at":4,"delta":"d","next":5"#, #""id":"7","at":2,"delta":"cd","next":4"#,
        #""id":"7","at":0,"delta":"abcd","next":4"#, #""id":"8","at":3,"delta":"d","next":4"#,
        #""id":"7","at":3,"delta":"ü","next":4"#, #""id":"7","at":3,"base64":"AA==","next":5"#,
        #""id":"7","at":3,"base64":"*","next":4"#, #""id":"7","at":3,"messages":{},"next":4"#,
        #""id":"7","at":3,"messages":[1],"next":4"#, #""id":"7","at":3,"next":4"#,
        #""id":"7","at":3,"delta":1,"next":4"#,
    ])
    mutating func whatDoesNotFitChangesNothing(_ frame: String) throws {
        _ = try news(#""id":"7","at":0,"delta":"abc","next":3,"status":"open""#)
        guard case .misfit = try take(frame) else {
            Issue.record("taken: \(frame)")
            return
        }
        #expect(request == #"{"id":"7","at":3}"#)
        #expect(try text(news(#""id":"7","at":3,"delta":"d","next":4"#)) == "d")
    }

    @Test(arguments: [
        "", #""id":7"#, #""id":"7""#, #""id":"7","at":-1,"delta":"","next":0"#, #""id":"7","at":5,"delta":"","next":1"#,
        #""id":"8","status":"deleted""#, #""id":"7","status":"new""#, #""id":"7","at":3,"next":3,"status":"new""#,
    ])
    mutating func whatIsNotUnderstoodIsPassedOver(_ frame: String) throws {
        _ = try news(#""id":"7","at":0,"delta":"abc","next":3,"status":"open""#)
        #expect(try take(frame) == .nothing)
    }

    @Test mutating func theEndHasItsRow() throws {
        let end = try #require(
            try news(#""id":"7","at":0,"delta":"abc","next":3,"status":"complete","row":{"id":5}"#).end)
        #expect(end == StreamEnd(reason: .complete, offset: 3, row: Data(#"{"id":5}"#.utf8)))
        stream.joinSucceeded()
        #expect(try take(#""id":"7","at":3,"delta":"","next":3,"status":"complete","row":{"id":5}"#) == .nothing)
        #expect(try take(#""id":"7","status":"deleted""#) == .nothing)
    }

    @Test mutating func whatIsDeletedHasEnded() throws {
        _ = try news(#""id":"7","at":0,"delta":"abc","next":3,"status":"open""#)
        #expect(try news(#""id":"7","status":"deleted""#).end?.reason == .deleted)
        #expect(try take(#""id":"7","status":"deleted""#) == .nothing)
    }

    @Test mutating func messagesAreKeptAsTheHubKeepsThem() throws {
        let news = try news("\"id\":\"7\",\"at\":0,\"messages\":[{\"n\":\n1}, 2],\"next\":11,\"status\":\"open\"")
        #expect(news.form == .messages && text(news) == "{\"n\": 1}\n2\n")
        let bytes = try self.news(#""id":"8","at":0,"base64":"AP8B","next":3"#)
        #expect(bytes.form == .bytes && bytes.bytes == [0, 255, 1])
    }
}
