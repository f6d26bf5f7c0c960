import Streams
import TestSupport
import Testing
import Wire

/// What becomes of an append: the rules of Durable Streams, section by section, on plain values.
@Suite struct StreamLogTests {
    private static func log(_ contentType: String = "text/plain") throws -> StreamLog {
        let name = try #require(StreamName("reply/1"))
        return try #require(
            StreamLog(.created(StreamID(7), name, StreamConfiguration(contentType: contentType), at: 1000)))
    }

    private static func text(_ body: String, closes: Bool = false, by stamp: ProducerStamp? = nil) -> StreamAppend {
        var append = StreamAppend(body: Array(body.utf8))
        append.closes = closes
        append.producer = stamp
        return append
    }

    private static func stamp(_ epoch: Int, _ sequence: Int, _ id: String = "writer") -> ProducerStamp {
        ProducerStamp(id: Name(id), epoch: epoch, sequence: sequence)
    }

    /// Decides, and applies what is to be written, as whoever keeps streams does.
    @discardableResult private static func perform(
        _ append: StreamAppend, on log: inout StreamLog, limit: Int = 1000
    ) -> StreamLog.Decision {
        let decision = log.decideAppend(append, limit: limit, at: 2000)
        if case .write(let record, _) = decision { log.applyRecord(record) }
        return decision
    }

    private static func refusal(_ decision: StreamLog.Decision) -> StreamRefusal? {
        if case .refused(let refusal) = decision { refusal } else { nil }
    }

    private static func isWritten(_ decision: StreamLog.Decision) -> Bool {
        if case .write = decision { true } else { false }
    }

    @Test func appendsGrowTheStream() throws {
        var log = try Self.log()
        #expect(Self.isWritten(Self.perform(Self.text("Hel"), on: &log)))
        #expect(Self.isWritten(Self.perform(Self.text("lo", closes: true), on: &log)))
        #expect(log.end == 5 && log.ending == StreamEnding(.complete, at: 2000))
    }

    @Test func nothingIsAppendedBehindTheEnd() throws {
        var log = try Self.log()
        Self.perform(Self.text("all", closes: true), on: &log)
        let decision = Self.perform(Self.text("more"), on: &log)
        #expect(Self.refusal(decision) == .ended(log.makeSnapshot(.open)) && log.end == 3)
        #expect(Self.perform(Self.text("", closes: true), on: &log) == .repeated(nil))
    }

    /// An abort that was committed with a row fences its producer as any other does, and nothing else of it changes.
    @Test func anAbortWithARowFencesItsProducer() throws {
        var log = try Self.log()
        Self.perform(Self.text("x", by: Self.stamp(0, 0)), on: &log)
        log.applyRecord(.closing([], StreamEnding(.aborted, at: 3000), producer: nil, sequence: nil))
        #expect(log.ending == nil && log.closing?.key.attempt == 1)
        log.applyRecord(.closed(row: Array("{}".utf8)))
        #expect(log.end == 1 && log.ending == StreamEnding(.aborted, at: 3000, row: Array("{}".utf8)))
        #expect(Self.refusal(Self.perform(Self.text("y", by: Self.stamp(0, 1)), on: &log)) == .staleEpoch(current: 1))
    }

    /// The order of section 5.2: the end before the type, the type before the sequence.
    @Test func theEndIsSaidBeforeAllElse() throws {
        var log = try Self.log()
        var wrong = Self.text("{}")
        wrong.contentType = "application/json"
        wrong.sequence = "1"
        var ordered = Self.text("a")
        ordered.sequence = "2"
        Self.perform(ordered, on: &log)
        #expect(Self.refusal(Self.perform(wrong, on: &log)) == .contentType(expected: "text/plain"))
        wrong.contentType = "Text/Plain; charset=utf-8"
        #expect(Self.refusal(Self.perform(wrong, on: &log)) == .sequenceRegression)
        Self.perform(Self.text("", closes: true), on: &log)
        wrong.contentType = "application/json"
        #expect(Self.refusal(Self.perform(wrong, on: &log)) == .ended(log.makeSnapshot(.open)))
    }

    @Test func anAppendWithoutBytesIsRefused() throws {
        var log = try Self.log()
        #expect(Self.refusal(Self.perform(Self.text(""), on: &log)) == .emptyBody)
    }

    @Test func bytesHaveToBeWhatTheStreamIs() throws {
        var text = try Self.log()
        #expect(Self.refusal(Self.perform(StreamAppend(body: [0xC3]), on: &text)) == .notUTF8)
        var json = try Self.log("application/json")
        #expect(Self.refusal(Self.perform(Self.text("{"), on: &json)) == .notJSON)
        #expect(Self.refusal(Self.perform(Self.text("[]"), on: &json)) == .emptyArray)
        #expect(json.end == 0)
    }

    @Test(arguments: [
        (#"{"a": 1}"#, "{\"a\": 1}\n"), ("[1,[2],{}]", "1\n[2]\n{}\n"),
        ("{\n\"a\":\r\n\"\\n\"}", "{ \"a\":  \"\\n\"}\n"),
        ("[[]]", "[]\n"),
    ])
    func messagesStandInLines(_ body: String, _ lines: String) throws {
        let stored = try StreamContent.json.storedBytes(Array(body.utf8), isFirst: false)
        #expect(String(decoding: stored, as: UTF8.self) == lines)
    }

    @Test func aStreamHasALimit() throws {
        var log = try Self.log()
        Self.perform(Self.text("1234"), on: &log, limit: 5)
        #expect(Self.refusal(Self.perform(Self.text("56"), on: &log, limit: 5)) == .streamTooLarge(limit: 5))
        #expect(Self.isWritten(Self.perform(Self.text("5", closes: true), on: &log, limit: 5)))
    }

    // MARK: Producers

    /// Whoever may write could fence all others for ever.
    @Test func anEpochThatNobodyCouldFollowIsRefused() throws {
        var log = try Self.log()
        let most = 2_000_000 + 86_400_000_000
        for epoch in [ProducerStamp.largest, most + 1] {
            let decision = Self.perform(Self.text("a", by: Self.stamp(epoch, 0)), on: &log)
            #expect(Self.refusal(decision) == .epochTooFar(most: most))
        }
        // A time in microseconds, of a clock that is fast, and then step by step.
        #expect(Self.isWritten(Self.perform(Self.text("a", by: Self.stamp(most, 0)), on: &log)))
        #expect(Self.isWritten(Self.perform(Self.text("a", by: Self.stamp(most + 1, 0)), on: &log)))
        #expect(Self.isWritten(Self.perform(Self.text("a", by: Self.stamp(most + 1_000_001, 0)), on: &log)))
        let decision = Self.perform(Self.text("a", by: Self.stamp(most + 2_000_002, 0)), on: &log)
        #expect(Self.refusal(decision) == .epochTooFar(most: most + 2_000_001))
    }

    /// What an older hub let in, or a file that somebody changed.
    @Test func numbersThatLeaveNoRoomStopNothing() throws {
        var log = try Self.log()
        log.applyRecord(.appended([1], nil, producer: Self.stamp(.max, .max), sequence: nil))
        #expect(
            Self.refusal(Self.perform(Self.text("a", by: Self.stamp(0, 0)), on: &log)) == .staleEpoch(current: .max))
        #expect(Self.perform(Self.text("a", by: Self.stamp(.max, 5)), on: &log) == .repeated(Self.stamp(.max, .max)))
        #expect(Self.isWritten(Self.perform(Self.text("a", by: Self.stamp(0, 0, "other")), on: &log)))
        log.applyRecord(.ended(StreamEnding(.aborted, at: 3000)))
        #expect(log.ending?.reason == .aborted)
    }

    @Test func whatAProducerRepeatsIsThereOnce() throws {
        var log = try Self.log()
        #expect(Self.isWritten(Self.perform(Self.text("a", by: Self.stamp(0, 0)), on: &log)))
        #expect(Self.isWritten(Self.perform(Self.text("b", by: Self.stamp(0, 1)), on: &log)))
        #expect(Self.perform(Self.text("a", by: Self.stamp(0, 0)), on: &log) == .repeated(Self.stamp(0, 1)))
        #expect(log.end == 2)
    }

    @Test func aGapIsRefusedWithBothNumbers() throws {
        var log = try Self.log()
        #expect(
            Self.refusal(Self.perform(Self.text("a", by: Self.stamp(0, 1)), on: &log))
                == .sequenceGap(expected: 0, received: 1))
        Self.perform(Self.text("a", by: Self.stamp(0, 0)), on: &log)
        #expect(
            Self.refusal(Self.perform(Self.text("c", by: Self.stamp(0, 2)), on: &log))
                == .sequenceGap(expected: 1, received: 2))
    }

    @Test func aNewEpochBeginsAtZeroAndFencesTheOldOne() throws {
        var log = try Self.log()
        Self.perform(Self.text("a", by: Self.stamp(0, 0)), on: &log)
        #expect(Self.refusal(Self.perform(Self.text("b", by: Self.stamp(1, 1)), on: &log)) == .epochMustBeginAtZero)
        #expect(Self.isWritten(Self.perform(Self.text("b", by: Self.stamp(1, 0)), on: &log)))
        #expect(Self.refusal(Self.perform(Self.text("z", by: Self.stamp(0, 1)), on: &log)) == .staleEpoch(current: 1))
    }

    @Test func aCloseThatIsRepeatedWithItsStampIsDone() throws {
        var log = try Self.log()
        Self.perform(Self.text("end", closes: true, by: Self.stamp(0, 0)), on: &log)
        #expect(
            Self.perform(Self.text("end", closes: true, by: Self.stamp(0, 0)), on: &log)
                == .repeated(Self.stamp(0, 0)))
        #expect(
            Self.refusal(Self.perform(Self.text("more", by: Self.stamp(0, 1)), on: &log))
                == .ended(log.makeSnapshot(.open)))
    }

    /// A producer that comes back from the dead is told that its time is over, not only that the stream ended.
    @Test func whoWasTakenForDeadHasToBeginAnEpoch() throws {
        var log = try Self.log()
        Self.perform(Self.text("a", by: Self.stamp(3, 0)), on: &log)
        log.applyRecord(.ended(StreamEnding(.aborted, at: 3000)))
        #expect(Self.refusal(Self.perform(Self.text("b", by: Self.stamp(3, 1)), on: &log)) == .staleEpoch(current: 4))
        #expect(Self.refusal(Self.perform(Self.text("b"), on: &log)) == .ended(log.makeSnapshot(.open)))
    }

    @Test func aStreamRemembersOnlySoManyProducers() throws {
        var log = try Self.log()
        for number in 0..<1000 {
            #expect(
                Self.isWritten(Self.perform(Self.text("x", by: Self.stamp(0, 0, "p\(number)")), on: &log, limit: 5000)))
        }
        #expect(
            Self.refusal(Self.perform(Self.text("x", by: Self.stamp(0, 0, "one more")), on: &log, limit: 5000))
                == .tooManyProducers)
        #expect(Self.isWritten(Self.perform(Self.text("x", by: Self.stamp(0, 1, "p7")), on: &log, limit: 5000)))
    }

    // MARK: Faults

    /// A producer whose answers get lost, that repeats, skips, and is overtaken by its successor: what is in the stream is what a
    /// faultless one would have written.
    @Test(arguments: 0..<20) func faultsNeitherRepeatNorSkip(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var log = try Self.log()
        var stored: [UInt8] = []
        var written = ""
        var (epoch, next) = (0, 0)
        for step in 0..<1000 {
            let piece = "\(step),"
            switch Int.random(in: 0..<10, using: &random) {
            case 0:
                // A zombie of an earlier epoch.
                guard epoch > 0 else { continue }
                let decision = log.decideAppend(
                    Self.text("zombie", by: Self.stamp(epoch - 1, next)), limit: .max, at: 0)
                #expect(Self.refusal(decision) == .staleEpoch(current: epoch))
            case 1:
                let decision = log.decideAppend(
                    Self.text("gap", by: Self.stamp(epoch, next + 1)), limit: .max, at: 0)
                #expect(Self.refusal(decision) == .sequenceGap(expected: next, received: next + 1))
            case 2 where next > 0:
                let old = Int.random(in: 0..<next, using: &random)
                let decision = log.decideAppend(Self.text("again", by: Self.stamp(epoch, old)), limit: .max, at: 0)
                #expect(decision == .repeated(Self.stamp(epoch, next - 1)))
            case 3 where next > 0:
                (epoch, next) = (epoch + 1, 0)
                fallthrough
            default:
                // The answer may be lost: then the same is sent again, and is there once.
                for _ in 0...Int.random(in: 0...2, using: &random) {
                    let decision = log.decideAppend(Self.text(piece, by: Self.stamp(epoch, next)), limit: .max, at: 0)
                    guard case .write(let record, _) = decision else { continue }
                    log.applyRecord(record)
                    if case .appended(let bytes, _, _, _) = record { stored += bytes }
                }
                written += piece
                next += 1
            }
        }
        #expect(String(decoding: stored, as: UTF8.self) == written && log.end == written.utf8.count)
    }

    // MARK: Closes with a row

    @Test func whatIsClosingIsAppendedWhenItIsClosed() throws {
        var log = try Self.log()
        log.applyRecord(
            .closing(Array("end".utf8), StreamEnding(.complete, at: 5), producer: Self.stamp(0, 0), sequence: nil))
        #expect(log.end == 0 && log.ending == nil && log.closing?.key == StreamCommitKey(id: log.id, attempt: 1))
        log.applyRecord(.closed(row: Array("{}".utf8)))
        #expect(log.end == 3 && log.closing == nil)
        #expect(log.ending == StreamEnding(.complete, at: 5, row: Array("{}".utf8)))
        #expect(
            Self.perform(Self.text("end", closes: true, by: Self.stamp(0, 0)), on: &log) == .repeated(Self.stamp(0, 0)))
    }

    @Test func whatIsReopenedNeverWas() throws {
        var log = try Self.log()
        log.applyRecord(
            .closing(Array("end".utf8), StreamEnding(.complete, at: 5), producer: Self.stamp(0, 0), sequence: "b"))
        log.applyRecord(.reopened)
        #expect(log.end == 0 && log.ending == nil && log.closing == nil)
        var append = Self.text("other", by: Self.stamp(0, 0))
        append.sequence = "a"
        #expect(Self.isWritten(Self.perform(append, on: &log)))
        log.applyRecord(.closing([], StreamEnding(.complete, at: 6), producer: nil, sequence: nil))
        #expect(log.closing?.key.attempt == 2, "no attempt is used twice")
    }
}
