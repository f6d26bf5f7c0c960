import Foundation
import StreamFiles
import Streams
import Testing
import Wire

/// Streams of which only the newest is kept: in memory, in the file, and after a kill.
@Suite(.serialized) struct StreamWindowTests {
    private func stage(bytes: Int = 100_000, seconds: Int? = nil) throws -> ServiceStage {
        var bound = StreamBound(bytes: bytes)
        bound.keepsNewest = true
        bound.age = seconds.map { Int64($0) * 1000 }
        return try ServiceStage { $0.limits.bounds = [BoundRule(pattern: "radio/*", bound)] }
    }

    private func piece(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number &* 7 &+ $0) }
    }

    private func append(_ bytes: [UInt8], to name: String, _ stage: ServiceStage, by stamp: ProducerStamp? = nil) throws
    {
        var append = StreamAppend(body: bytes)
        append.producer = stamp
        guard case .appended = try stage.ask(.append(append), name) else {
            Issue.record("it is refused")
            return
        }
    }

    private func kept(_ name: String, _ stage: ServiceStage) throws -> [UInt8] {
        let buffer = try stage.buffer(name)
        var bytes: [UInt8] = []
        buffer.copyBytes(buffer.snapshot.start..<buffer.snapshot.end, into: &bytes)
        return bytes
    }

    private func size(of stage: ServiceStage) throws -> Int {
        let file = try #require(try stage.files.first)
        return try Data(contentsOf: URL(fileURLWithPath: stage.directory + "/" + file)).count
    }

    @Test func whatIsOlderLeavesMemoryAndFile() throws {
        let stage = try stage()
        try stage.create("radio/1", "audio/mpeg")
        var all: [UInt8] = []
        for number in 0..<200 {
            let stamp = ProducerStamp(id: "w", epoch: 0, sequence: number)
            try append(piece(number, 5000), to: "radio/1", stage, by: stamp)
            all += piece(number, 5000)
            let snapshot = try stage.buffer("radio/1").snapshot
            #expect(snapshot.end == all.count && snapshot.end - snapshot.start <= 100_000 + 65_536)
            #expect(snapshot.start == 0 || snapshot.end - snapshot.start >= 100_000)
            #expect(try kept("radio/1", stage) == Array(all[snapshot.start...]))
            guard number % 40 == 39 else { continue }
            // And so it is after a kill, for readers and for whoever writes.
            let next = try stage.afterKill()
            #expect(try next.buffer("radio/1").snapshot.start == snapshot.start)
            #expect(try kept("radio/1", next) == Array(all[snapshot.start...]))
            #expect(try size(of: next) < 200_000)
            guard
                case .appended(_, isRepeated: true, _) = try next.append("?", to: "radio/1", by: stamp)
            else {
                Issue.record("its producer is forgotten")
                return
            }
        }
        #expect(try stage.buffer("radio/1").snapshot.start > 800_000)
        let statistics = try stage.statistics()
        #expect(try statistics.bytes == kept("radio/1", stage).count && statistics.appendedBytes == 1_000_000)
    }

    /// Whether a file was written anew, or the process died before it took its place.
    @Test func aReplacementThatIsNotDoneIsForgotten() throws {
        let stage = try stage()
        try stage.create("radio/1", "audio/mpeg", body: "x")
        let file = try #require(try stage.files.first)
        try Data("half".utf8).write(to: URL(fileURLWithPath: stage.directory + "/" + file + ".new"))
        let next = try stage.afterKill()
        #expect(try next.files == [file] && next.text("radio/1") == "x")
    }

    @Test func messagesAndCharactersStayWhole() throws {
        let stage = try stage(bytes: 2048)
        try stage.create("radio/json", "application/json")
        try stage.create("radio/text")
        for number in 0..<400 {
            let message = "{\"n\":\(number),\"x\":\"\(String(repeating: "y", count: 500 + number % 7))\"}"
            try append(Array(message.utf8), to: "radio/json", stage)
            try append(Array(String(repeating: "🐦", count: 120 + number % 3).utf8), to: "radio/text", stage)
        }
        for stage in [stage, try stage.afterKill()] {
            let messages = try kept("radio/json", stage)
            #expect(messages.starts(with: "{\"n\":".utf8) && messages.last == UInt8(ascii: "\n"))
            let text = try kept("radio/text", stage)
            #expect(!text.isEmpty && String(validating: text, as: UTF8.self)?.allSatisfy { $0 == "🐦" } == true)
            for name in ["radio/json", "radio/text"] {
                let buffer = try stage.buffer(name)
                #expect(buffer.snapshot.start > 0)
                #expect(StreamPiece(of: buffer, in: buffer.snapshot, from: buffer.snapshot.start, most: 1000) != nil)
            }
        }
    }

    @Test func oneAppendHasNoMoreThanTheWindow() throws {
        let stage = try stage(bytes: 2048)
        try stage.create("radio/1", "audio/mpeg")
        #expect(
            try stage.ask(.append(StreamAppend(body: piece(1, 2049))), "radio/1").refusal
                == .streamTooLarge(limit: 2048))
        try append(piece(1, 2048), to: "radio/1", stage)
    }

    @Test func whatIsOldGoesByTime() throws {
        let stage = try stage(bytes: 1_000_000, seconds: 1)
        try stage.create("radio/1", "audio/mpeg")
        try append(piece(0, 90_000), to: "radio/1", stage)
        // Nothing goes before its time; then it does without another append, too.
        #expect(try stage.buffer("radio/1").snapshot.start == 0)
        usleep(1_100_000)
        try append(piece(1, 10_000), to: "radio/1", stage)
        try eventually("the old is gone") { try stage.buffer("radio/1").snapshot.start == 90_000 }
        #expect(try kept("radio/1", stage) == piece(1, 10_000))
        #expect(try stage.statistics().bytes == 10_000)
    }

    @Test func aStreamThatEndedKeepsItsWindow() throws {
        let stage = try stage(bytes: 2048)
        try stage.create("radio/1", "audio/mpeg")
        for number in 0..<200 { try append(piece(number, 1000), to: "radio/1", stage) }
        try stage.append("", to: "radio/1", closes: true)
        let before = try kept("radio/1", stage)
        #expect(try kept("radio/1", stage.afterKill()) == before && before.count < 100_000)
    }

    /// Whatever stands in a folder: numbers beyond those that are reckoned with are no record's.
    @Test func aCheckpointIsReadAsItWasWritten() throws {
        let checkpoint = StreamCheckpoint(
            start: 1 << 40,
            producers: [
                "a \"b\"": .init(epoch: 3, sequence: 9, end: 1 << 39), "é": .init(epoch: 0, sequence: 0, end: 0),
            ], sequence: "ü2", wasHeld: true, attempts: 7)
        var bytes: [UInt8] = []
        RecordFrame.append(.continued(checkpoint), to: &bytes)
        #expect(RecordFrame.records(in: bytes).records == [.continued(checkpoint)])
        let wrong = [
            #"{"from":-1,"producers":[],"attempts":0}"#, #"{"from":1,"producers":[],"attempts":9e99}"#,
            #"{"from":1,"attempts":0}"#, #"{"from":9223372036854775807,"producers":[],"attempts":0}"#,
            #"{"from":1,"producers":[{"producer":"a","epoch":-1,"seq":0,"end":0}],"attempts":0}"#,
            #"{"from":1,"producers":[{"producer":"a","epoch":0,"seq":0,"end":-5}],"attempts":0}"#,
            #"{"from":1,"producers":[{"epoch":0,"seq":0,"end":5}],"attempts":0}"#,
        ]
        for facts in wrong {
            var body: [UInt8] = [8]
            for byte in 0..<4 { body.append(UInt8(truncatingIfNeeded: facts.utf8.count >> (8 * byte))) }
            body += facts.utf8
            #expect(RecordFrame.records(in: RecordFrame.framedBody(body[...])).records.isEmpty, "\(facts)")
        }
    }
}
